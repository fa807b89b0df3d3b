/**
 * `hyperkube assets`: a directory that controller-runtime's envtest takes for its own (KUBEBUILDER_ASSETS). What is in it calls
 * back here: kube-apiserver is ours with objects in memory, etcd just says that it is well, because nobody asks it anything.
 */
import { existsSync } from 'node:fs'
import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { defineProgram, type Program, type ProgramContext } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

export const assets: Program = defineProgram({
  name: 'assets',
  long:
    "assets prints a directory with kube-apiserver, etcd and kubectl for controller-runtime's envtest:\n\n" +
    '  KUBEBUILDER_ASSETS=$(hyperkube assets) go test ./...\n\n' +
    'With --with-controllers the controllers, a scheduler and a simulated node run beside the server, so that owners take ' +
    'what they own with them, namespaces go, and pods run. kubectl is the one that the machine has.',
  version: kubernetesVersion(),
  flags: {
    assets: { 'with-controllers': flag(bool, false, 'controllers, a scheduler and a simulated node run as well') },
  },
  async run({ flags, stdout, stderr, env }) {
    const isWhole = flags['with-controllers']
    const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache')
    const folder = join(cache, 'hyperkube', isWhole ? 'assets-with-controllers' : 'assets')
    await mkdir(folder, { recursive: true })
    await writeScript(join(folder, 'kube-apiserver'), `envtest-kube-apiserver --with-controllers=${isWhole}`)
    await writeScript(join(folder, 'etcd'), 'envtest-etcd')
    const kubectl = findKubectl(env)
    await rm(join(folder, 'kubectl'), { force: true })
    if (kubectl === undefined) stderr.write('There is no kubectl on this machine: the directory has none either\n')
    else await symlink(kubectl, join(folder, 'kubectl'))
    stdout.write(`${folder}\n`)
    return 0
  },
})

/** A shell quotes what is between single quotes, but for those. */
async function writeScript(file: string, command: string): Promise<void> {
  const program = fileURLToPath(new URL('../../bin/hyperkube', import.meta.url)).replaceAll("'", String.raw`'\''`)
  await writeFile(file, `#!/bin/sh\nexec '${program}' ${command} "$@"\n`)
  await chmod(file, 0o755)
}

function findKubectl({ PATH = '' }: ProgramContext['env']): string | undefined {
  return PATH.split(delimiter)
    .map((folder) => join(folder, 'kubectl'))
    .find((file) => existsSync(file))
}
