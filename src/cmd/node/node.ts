/**
 * `hyperkube node`: keeps the processes of a worker alive, by a file or by what a server says, and shows how it is. Published as a
 * bundle of its own: it stays beside those processes, and is to be small.
 */
import { type Command, defineProgram, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { runAlone } from '../process.ts'

const SUPERVISING: readonly Command[] = [
  { name: 'run', short: 'Keeps the three alive, by a file', load: async () => (await import('./supervise.ts')).run },
  { name: 'once', short: 'Looks at them once', load: async () => (await import('./supervise.ts')).once },
  { name: 'agent', short: 'Does what a server says', load: async () => (await import('./agent.ts')).agent },
  {
    name: 'status',
    short: 'Shows what was seen and done',
    load: async () => (await import('./supervise.ts')).status,
  },
]

const SERVICE: readonly Command[] = [
  { name: 'install', short: 'Makes it a service of systemd', load: async () => (await import('./service.ts')).install },
  { name: 'start', short: 'Starts the service', load: async () => (await import('./service.ts')).start },
  { name: 'stop', short: 'Stops it, and the three', load: async () => (await import('./service.ts')).stop },
  { name: 'logs', short: 'Shows what was said', load: async () => (await import('./service.ts')).logs },
  { name: 'remove', short: 'Removes all of it', load: async () => (await import('./service.ts')).remove },
]

const WINDOWS: readonly Command[] = [
  { name: 'setup', short: 'Makes this Windows machine a worker', load: async () => (await import('./setup.ts')).setup },
  { name: 'reset', short: 'Makes it a plain machine again', load: async () => (await import('./setup.ts')).reset },
]

export const node: Program = defineProgram({
  name: 'node',
  long: 'node keeps kubelet, flanneld and kube-proxy alive on this machine.',
  version: kubernetesVersion(),
  flags: {},
  commands: [
    { title: 'Keeping a node alive', commands: SUPERVISING },
    { title: 'As a service of this machine', commands: SERVICE },
    { title: 'Workers with Windows', commands: WINDOWS },
  ],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})

/** Where the process begins when this is all of the program. */
export function start(): void {
  void runAlone(node)
}
