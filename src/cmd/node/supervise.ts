/** `hyperkube node run`, `once` and `status`: run the supervisor with a settings file. */
import { readFile } from 'node:fs/promises'

import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { EXIT_CODES } from '#supervisor/outcome.ts'
import { readSettings } from '#supervisor/settings-file.ts'
import type { Supervisor } from '#supervisor/supervisor.ts'

import { CONFIG_FILE, type NodeStatus, ROOT_FLAG, statusFile, superviseHere, SUPERVISION_FLAGS } from './machine.ts'

const FLAGS = {
  node: { config: flag(string, CONFIG_FILE, '`file` with the settings of this node'), ...SUPERVISION_FLAGS },
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
  long: 'run checks kubelet, flanneld and kube-proxy periodically and starts missing ones.',
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
    'once checks kubelet, flanneld and kube-proxy and starts missing ones. The exit code is 0 if all is well, 1 if manual ' +
    'intervention is needed, and 2 if a retry may help.',
  flags: FLAGS,
  run: (invocation, signal) =>
    supervised(invocation, async (supervisor) => EXIT_CODES[(await supervisor.look(signal)).kind]),
})

export const status: Program = defineProgram({
  name: 'status',
  long: 'status shows the observations and actions of the supervisor and agent on this machine.',
  flags: { node: { root: ROOT_FLAG } },
  async run({ flags, stdout }) {
    const file = statusFile(flags.root)
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) throw new ProgramError(`no supervisor has written ${file}`)
    stdout.write(text)
    return (JSON.parse(text) as Partial<NodeStatus>).last?.kind === 'ok' ? 0 : 1
  },
})
