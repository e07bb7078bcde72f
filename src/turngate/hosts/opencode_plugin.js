// Turngate asks the gates of a project when the agent of OpenCode is idle, and sends it back to work with their reason.
// `turngate install opencode` has written this file, and `turngate uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = []

const words = process.argv.slice(2)
const isRun = words.includes("run") // `opencode run` ends when the agent is idle, but waits for `dispose`
const printsJson = words.includes("json") || words.includes("--format=json")
const isAcp = words.includes("acp") && !isRun // its turn has ended then: only `turngate acp` can continue it
const prompts = new Map() // session: the id of the user's last prompt
const reasons = new Map() // session: the text that Turngate has sent to its agent
const stopping = new Set() // sessions whose stop is being answered
const idle = new Set() // those of them that have stopped once more since
const toolCalls = new Map() // session: how many tool calls its agent has made
const children = new Map() // session: the process that is asked
let pending = Promise.resolve()
let isEnding = false

const ask = (event) =>
  new Promise((resolve) => {
    const env = { ...process.env }
    delete env.TURNGATE_IN_TOOL // of an agent that has started OpenCode
    const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: event.cwd, env })
    const failed = (why) => resolve({ systemMessage: `Turngate could not be asked, so this stop was not checked: ${why}` })
    let stdout = ""
    let stderr = ""
    children.set(event.session_id, child)
    child.stdout.on("data", (data) => (stdout += data))
    child.stderr.on("data", (data) => (stderr += data))
    child.stdin.on("error", () => {})
    child.on("error", (error) => failed(`${COMMAND[0]}: ${error.message}`))
    child.on("close", (code) => {
      children.delete(event.session_id)
      if (code !== 0) return failed(`exit code ${code}: ${stderr.trim()}`)
      try {
        resolve(stdout.trim() ? JSON.parse(stdout) : {})
      } catch {
        failed(`its answer is not JSON: ${stdout.slice(0, 200)}`)
      }
    })
    child.stdin.end(JSON.stringify(event))
  })

export const Turngate = async ({ client, directory }) => {
  const tell = async (message) => {
    if (isRun) process.stderr.write(`${message}\n`)
    else await client.tui.showToast({ body: { title: "Turngate", message, variant: "warning", duration: 15000 } })
  }

  const print = (part) => {
    const line = printsJson ? { type: "text", timestamp: Date.now(), sessionID: part.sessionID, part } : part.text
    process.stdout.write(`${printsJson ? JSON.stringify(line) : line}\n`)
  }

  const answerStops = async (id) => {
    for (let isActive = false; ; isActive = true) {
      idle.delete(id) // this stop is the one that is answered
      const prompt = prompts.get(id)
      const { data: session } = await client.session.get({ path: { id } })
      if (!session || session.parentID) return // the answer of a subagent has gone to its agent already
      const { data: messages } = await client.session.messages({ path: { id }, query: { limit: 1 } })
      const { info, parts } = messages?.at(-1) ?? {}
      if (info?.role !== "assistant" || info.error) return
      if (info.finish === "tool-calls" && !isRun) return // the user has refused a tool call
      const texts = parts.filter((part) => part.type === "text").map((part) => part.text)
      const answered = await ask({
        hook_event_name: "Stop",
        session_id: id,
        prompt_id: prompt,
        cwd: directory,
        permission_mode: info.mode === "plan" ? "plan" : "default",
        stop_hook_active: isActive,
        last_assistant_message: texts.at(-1),
        tool_calls: toolCalls.get(id) ?? 0,
        model: info.modelID,
        opencode_agent: info.mode,
      })
      if (prompts.get(id) !== prompt) return // the user has gone on
      if (answered.systemMessage) await tell(answered.systemMessage).catch(() => {})
      if (answered.decision !== "block") return
      reasons.set(id, answered.reason)
      const body = {
        agent: info.mode,
        model: { providerID: info.providerID, modelID: info.modelID },
        parts: [{ type: "text", text: answered.reason }],
      }
      const reply = await client.session.prompt({ path: { id }, body })
      idle.delete(id)
      if (reply.error) return await tell(`Turngate could not send the agent back: ${JSON.stringify(reply.error)}`)
      if (isRun) reply.data.parts.filter((part) => part.type === "text").forEach(print)
    }
  }

  const answer = async (id) => {
    try {
      do await answerStops(id)
      while (idle.has(id))
    } catch (error) {
      await tell(`Turngate: ${error}`).catch(() => {})
    } finally {
      stopping.delete(id)
    }
  }

  if (isAcp) return {}
  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (parts[0]?.text === reasons.get(sessionID)) return
      const isFirst = !prompts.has(sessionID)
      prompts.set(sessionID, message.id)
      children.get(sessionID)?.kill() // of a stop that no longer counts
      if (!isFirst) return
      const { data: session } = await client.session.get({ path: { id: sessionID } })
      if (session?.parentID) return
      const { model, agent } = message
      const event = { hook_event_name: "SessionStart", source: "startup", session_id: sessionID, cwd: directory }
      await ask({ ...event, model: model?.modelID, opencode_agent: agent })
    },
    "tool.execute.after": async ({ sessionID }) => {
      toolCalls.set(sessionID, (toolCalls.get(sessionID) ?? 0) + 1)
    },
    "shell.env": async ({ sessionID }, output) => {
      if (sessionID) output.env.TURNGATE_IN_TOOL = "1" // a command of the agent is no answer of a person
    },
    event: async ({ event }) => {
      const { sessionID: id } = event.properties
      if (event.type === "permission.asked" && isEnding) {
        // `opencode run` no longer answers.
        const response = words.includes("--auto") ? "once" : "reject"
        const path = { id, permissionID: event.properties.id }
        await client.postSessionIdPermissionsPermissionId({ path, body: { response } })
      }
      if (event.type !== "session.idle") return
      if (stopping.has(id)) return void idle.add(id)
      stopping.add(id)
      pending = answer(id)
      await pending
    },
    dispose: async () => {
      isEnding = true
      if (isRun) await pending
      else children.forEach((child) => child.kill())
    },
  }
}
