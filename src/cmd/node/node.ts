/**
 * `hyperkube node`: supervises the processes of a worker node, by a settings file or by the plan that a server sends,
 * and shows their status. It is a separate, small bundle, because it stays in memory beside those processes.
 */
import { type Command, defineProgram, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { runAlone } from '../process.ts'

const SUPERVISING: readonly Command[] = [
  {
    name: 'run',
    short: 'Supervise the three programs with a settings file',
    load: async () => (await import('./supervise.ts')).run,
  },
  { name: 'once', short: 'Check the three programs once', load: async () => (await import('./supervise.ts')).once },
  { name: 'agent', short: 'Follow the plan of a server', load: async () => (await import('./agent.ts')).agent },
  {
    name: 'status',
    short: 'Show the status of the supervisor',
    load: async () => (await import('./supervise.ts')).status,
  },
]

const SERVICE: readonly Command[] = [
  {
    name: 'install',
    short: 'Install the supervisor as a systemd service',
    load: async () => (await import('./service.ts')).install,
  },
  { name: 'start', short: 'Start the service', load: async () => (await import('./service.ts')).start },
  {
    name: 'stop',
    short: 'Stop the service and the three programs',
    load: async () => (await import('./service.ts')).stop,
  },
  { name: 'logs', short: 'Show logs', load: async () => (await import('./service.ts')).logs },
  {
    name: 'remove',
    short: 'Remove the service and its files',
    load: async () => (await import('./service.ts')).remove,
  },
]

const WINDOWS: readonly Command[] = [
  {
    name: 'setup',
    short: 'Set up this Windows machine as a worker',
    load: async () => (await import('./setup.ts')).setup,
  },
  { name: 'reset', short: 'Undo the setup', load: async () => (await import('./setup.ts')).reset },
]

export const node: Program = defineProgram({
  name: 'node',
  long: 'node supervises kubelet, flanneld and kube-proxy on this machine.',
  version: kubernetesVersion(),
  flags: {},
  commands: [
    { title: 'Supervising a node', commands: SUPERVISING },
    { title: 'Running as a systemd service', commands: SERVICE },
    { title: 'Windows workers', commands: WINDOWS },
  ],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})

/** The start time of the process, if the process runs only this program. */
export function start(): void {
  void runAlone(node)
}
