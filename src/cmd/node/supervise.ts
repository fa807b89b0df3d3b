/** `hyperkube node run`, `once` and `status`: the supervisor by a file that says what this node is to be. */
import { readFile } from 'node:fs/promises'

import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml.ts'
import { EXIT_CODES } from '#supervisor/outcome.ts'
import { readSettings } from '#supervisor/settings-file.ts'
import type { Supervisor } from '#supervisor/supervisor.ts'

import { CONFIG_FILE, type NodeStatus, ROOT_FLAG, statusFile, superviseHere, SUPERVISION_FLAGS } from './machine.ts'

const FLAGS = {
  node: { config: flag(string, CONFIG_FILE, '`file` that says what this node is to be'), ...SUPERVISION_FLAGS },
  logs: LOG_FLAGS,
}

async function supervised(
  { flags, ...context }: Invocation<typeof FLAGS>,
  use: (supervisor: Supervisor) => Promise<number>,
): Promise<number> {
  await using closing = new AsyncDisposableStack()
  const settings = readSettings(parseYaml(await context.readFile(flags.config)))
  const { createSupervisor } = await superviseHere(flags, context, closing)
  return await use(createSupervisor(settings))
}

export const run: Program = defineProgram({
  name: 'run',
  long: 'run looks at kubelet, flanneld and kube-proxy again and again, and starts what is missing.',
  flags: FLAGS,
  run: (invocation, signal) =>
    supervised(invocation, async (supervisor) => {
      await supervisor.run(signal)
      return 0
    }),
})

export const once: Program = defineProgram({
  name: 'once',
  long:
    'once looks at kubelet, flanneld and kube-proxy, and starts what is missing: exit code 0 when all is well, 1 when a person ' +
    'has to look, 2 when another try may help.',
  flags: FLAGS,
  run: (invocation, signal) =>
    supervised(invocation, async (supervisor) => EXIT_CODES[(await supervisor.look(signal)).kind]),
})

export const status: Program = defineProgram({
  name: 'status',
  long: 'status shows what the supervisor of this machine, and its agent, have seen and done.',
  flags: { node: { root: ROOT_FLAG } },
  async run({ flags, stdout }) {
    const file = statusFile(flags.root)
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) throw new ProgramError(`no supervisor has left ${file}`)
    stdout.write(text)
    return (JSON.parse(text) as Partial<NodeStatus>).last?.kind === 'ok' ? 0 : 1
  },
})
