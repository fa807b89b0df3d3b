/**
 * `hyperkube assets`: writes a directory for controller-runtime's envtest (KUBEBUILDER_ASSETS). The programs in it run
 * hyperkube: kube-apiserver stores objects in memory, and etcd only reports that it is healthy.
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
    'With --with-controllers the controllers, a scheduler and a simulated node run beside the server, so that garbage ' +
    'collection, namespace deletion and pods work. kubectl is the one installed on the machine.',
  version: kubernetesVersion(),
  flags: {
    assets: { 'with-controllers': flag(bool, false, 'also run controllers, a scheduler and a simulated node') },
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
    if (kubectl === undefined)
      stderr.write('kubectl is not installed on this machine, so the directory does not contain it\n')
    else await symlink(kubectl, join(folder, 'kubectl'))
    stdout.write(`${folder}\n`)
    return 0
  },
})

/** Single quotes protect everything in a shell except single quotes. */
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
