/** `hyperkube machine`: what "hyperkube build" runs on machines. It is not for people. */
import type { Command, Program } from '#lib/program.ts'
import { defineProgram } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    short: 'Does to this machine what it is asked over its standard input',
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'keep',
    short: 'Keeps services alive where there is no systemd',
    load: async () => (await import('./serve.ts')).keep,
  },
  {
    name: 'proxy',
    short: 'Passes connections on to API servers',
    load: async () => (await import('./proxy.ts')).proxy,
  },
  {
    name: 'etcd-snapshots',
    short: 'Takes snapshots of etcd',
    load: async () => (await import('./etcd-snapshots.ts')).etcdSnapshots,
  },
  {
    name: 'old-programs',
    short: 'Removes copies of this program that nothing runs any more',
    load: async () => (await import('./old-programs.ts')).oldPrograms,
  },
  {
    name: 'containerd',
    short: 'Runs the containerd of the node, and gives pods the addresses that flannel has for them',
    load: async () => (await import('./containerd.ts')).containerd,
  },
]

export const machine: Program = defineProgram({
  name: 'machine',
  long: 'machine is what "hyperkube build" runs on the machines that it makes a cluster of.',
  version: kubernetesVersion(),
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
