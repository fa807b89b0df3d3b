/** `hyperkube build`: creates a cluster on machines over SSH, like RKE. */
import { type Command, defineProgram, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { OUTPUT_FLAGS } from './flags.ts'

const COMMANDS: readonly Command[] = [
  {
    name: 'up',
    short: 'Create or update the cluster from cluster.yml',
    load: async () => (await import('./up.ts')).up,
  },
  {
    name: 'plan',
    short: 'Show the steps of up without applying them',
    load: async () => (await import('./up.ts')).plan,
  },
  {
    name: 'config',
    short: 'Ask for the settings of a cluster and write a cluster.yml',
    load: async () => (await import('./config.ts')).config,
  },
  {
    name: 'status',
    short: 'Show the state of machines and nodes',
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'remove',
    short: 'Remove the cluster and all its data from its machines',
    load: async () => (await import('./remove.ts')).remove,
  },
  {
    name: 'cert',
    short: 'Rotate certificates, or create signing requests',
    load: async () => (await import('./cert.ts')).cert,
  },
  {
    name: 'encrypt',
    short: 'Rotate the encryption key of Secrets',
    load: async () => (await import('./encrypt.ts')).encrypt,
  },
  {
    name: 'etcd',
    short: 'Save, list and restore snapshots of etcd',
    load: async () => (await import('./etcd.ts')).etcd,
  },
  {
    name: 'util',
    short: 'Restore the state file or the kubeconfig',
    load: async () => (await import('./util.ts')).util,
  },
]

export const build: Program = defineProgram({
  name: 'build',
  aliases: ['rke'],
  long:
    "build creates a cluster on machines that are reachable over SSH, from a file with the machines and their roles: RKE's cluster.yml, " +
    'without Docker. The program behaves the same under the name rke.',
  version: kubernetesVersion(),
  flags: { output: OUTPUT_FLAGS },
  passesFlags: true,
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
