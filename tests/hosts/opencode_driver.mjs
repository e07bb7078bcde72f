// Plays OpenCode for its plugin: a session whose agent answers each prompt, and a user. Prints what the plugin did.
// Arguments: the plugin, a scenario as JSON, and then those of `opencode`.
import { existsSync, readFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [plugin, text, ...words] = process.argv.slice(2)
process.argv.splice(2, process.argv.length, ...words)
const { Turngate } = await import(pathToFileURL(plugin))
const scenario = { info: {}, session: {}, ...JSON.parse(text) }
const did = []
const info = { role: "assistant", mode: "build", providerID: "p", modelID: "m", finish: "stop", ...scenario.info }
const path = (id) => ({ path: { id } })
const client = {
  session: {
    get: async () => ({ data: { id: "s", ...scenario.session } }),
    messages: async () => ({ data: [{ info, parts: [{ type: "text", text: "I am done." }] }] }),
    prompt: async ({ path: { id }, body }) => {
      did.push(["prompt", id, body.agent, body.parts[0].text])
      await hooks["chat.message"]({ sessionID: id }, { message: { id: `m${did.length}` }, parts: body.parts })
      await hooks["tool.execute.after"]?.({ sessionID: id })
      await hooks.event({ event: { type: "session.idle", properties: { sessionID: id } } })
      return { data: { parts: [{ type: "text", text: "Now I am done." }] } }
    },
  },
  tui: { showToast: async ({ body }) => did.push(["toast", body.message]) },
  postSessionIdPermissionsPermissionId: async ({ path, body }) => did.push([body.response, path.permissionID]),
}
const hooks = await Turngate({ client, directory: process.cwd() })
const message = (id, text) => [{ sessionID: "s" }, { message: { id, agent: "build" }, parts: [{ type: "text", text }] }]
const asked = async () => {
  while (!existsSync("events") || readFileSync("events", "utf8").split("\n").length < 3) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
if (hooks.event) {
  await hooks["chat.message"](...message("m0", "Do the work."))
  const idle = hooks.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
  if (scenario.goes_on) {
    await asked()
    await hooks["chat.message"](...message("m1", "Something else."))
  }
  if (scenario.quits) await asked().then(hooks.dispose)
  const ended = words.includes("run") ? hooks.dispose() : idle
  if (scenario.asks) {
    await hooks.event({ event: { type: "permission.asked", properties: { sessionID: "s", id: "per_1" } } })
  }
  await ended
}
const env = {}
await hooks["shell.env"]?.({ sessionID: "s" }, { env })
console.log(JSON.stringify({ did, env, hooks: Object.keys(hooks).length }))
