// An agent and an editor written with the TypeScript SDK, whose module ACP_SDK names.
// `node sdk_session.mjs agent`: the text of a prompt names what it does, one word a step.
// `node sdk_session.mjs editor FOLDER COMMAND…`: starts the agent, works with it, and prints what it saw as JSON.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const acp = await import(process.env.ACP_SDK);
const any = (value) => value;
const say = (client, sessionId, text) =>
  client.notify("session/update", {
    sessionId,
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
  });

function runAgent() {
  const folders = {};
  let cancelled;
  const open = (sessionId, cwd) => ((folders[sessionId] = cwd), { sessionId });
  acp
    .agent({ name: "scripted" })
    .onRequest("initialize", ({ params }) => ({
      protocolVersion: params.protocolVersion,
      agentCapabilities: { loadSession: true },
    }))
    .onRequest("session/new", ({ params }) => open(`ts-${Object.keys(folders).length}`, params.cwd))
    .onRequest("session/load", ({ params }) => (open(params.sessionId, params.cwd), {}))
    .onRequest("_x.dev/hello", any, ({ params }) => ({ hello: params.name }))
    .onNotification("session/cancel", () => cancelled?.())
    .onRequest("session/prompt", async ({ params, client }) => {
      const { sessionId } = params;
      const text = params.prompt[0].text;
      const said = ["Done."];
      for (const word of text.startsWith("do: ") ? text.slice(4).split(" ") : ["write"]) {
        if (word === "permission") {
          const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
          const toolCall = { toolCallId: "1", title: "edit", kind: "edit" };
          const answer = await client.request("session/request_permission", { sessionId, toolCall, options });
          said.push(answer.outcome.optionId);
        } else if (word === "fs") {
          said.push((await client.request("fs/read_text_file", { sessionId, path: "/note" })).content);
        } else if (word === "terminal") {
          const terminal = await client.createTerminal({ sessionId, command: "echo" });
          said.push((await terminal.waitForExit()).exitCode, (await terminal.currentOutput()).output);
          await terminal.release();
        } else if (word === "write") {
          await client.request("fs/write_text_file", {
            sessionId,
            path: `${folders[sessionId]}/done.txt`,
            content: "x",
          });
        } else if (word === "wait") {
          const ended = new Promise((resolve) => (cancelled = resolve));
          await say(client, sessionId, "waiting");
          await ended;
          return { stopReason: "cancelled" };
        } else if (word) {
          return { stopReason: word };
        }
      }
      await say(client, sessionId, said.join(" "));
      return { stopReason: "end_turn" };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}

async function runEditor([folder, command, ...words]) {
  const process_ = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
  const seen = { texts: [], cards: [] };
  let waiting;
  const editor = acp
    .client({ name: "editor" })
    .onNotification("session/update", ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") {
        seen.texts.push(update.content.text);
        waiting?.();
      } else if (update.sessionUpdate.startsWith("tool_call")) {
        seen.cards.push([update.title, update.status]);
      }
    })
    .onRequest("session/request_permission", () => ({ outcome: { outcome: "selected", optionId: "yes" } }))
    .onRequest("fs/read_text_file", () => ({ content: "text" }))
    .onRequest("fs/write_text_file", ({ params }) => (writeFileSync(params.path, params.content), {}))
    .onRequest("terminal/create", () => ({ terminalId: "t" }))
    .onRequest("terminal/wait_for_exit", () => ({ exitCode: 0 }))
    .onRequest("terminal/output", () => ({ output: "hi", truncated: false }))
    .onRequest("terminal/release", () => ({}));
  const stream = acp.ndJsonStream(Writable.toWeb(process_.stdin), Readable.toWeb(process_.stdout));
  await editor.connectWith(stream, async (agent) => {
    await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await agent.request("session/new", { cwd: folder, mcpServers: [] });
    const ask = (text, id = sessionId) =>
      agent.request("session/prompt", { sessionId: id, prompt: [{ type: "text", text }] });
    seen.refused = await ask("do: refusal");
    const waited = new Promise((resolve) => (waiting = resolve));
    const working = ask("do: wait");
    await waited;
    await agent.notify("session/cancel", { sessionId });
    seen.cancelled = await working;
    seen.extension = await agent.request("_x.dev/hello", { name: "you" });
    seen.unknown = await agent.request("unknown/method", {}).catch((error) => error.code);
    seen.blocked = await ask("do: permission fs terminal");
    await agent.request("session/load", { sessionId: "old", cwd: folder, mcpServers: [] });
    seen.loaded = await ask("do: ", "old");
    writeFileSync(`${folder}/wait`, "");
    const checked = ask("do: ");
    while (!existsSync(`${folder}/started`)) await new Promise((resolve) => setTimeout(resolve, 10));
    await agent.notify("session/cancel", { sessionId });
    seen.cancelledGate = await checked;
  });
  process_.stdin.end();
  console.log(JSON.stringify(seen));
  process.exit(0);
}

const [role, ...rest] = process.argv.slice(2);
role === "agent" ? runAgent() : await runEditor(rest);
