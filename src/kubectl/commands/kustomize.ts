/** kubectl kustomize: prints what a kustomization stands for. */
import { stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { kustomizeText } from '../kustomization.ts'

/** All that is for functions, plugins and charts: who asks for it must know that it is not there. */
const NOT_BUILT = [
  'as-current-user',
  'enable-alpha-plugins',
  'enable-helm',
  'env',
  'helm-api-versions',
  'helm-command',
  'helm-debug',
  'helm-kube-version',
  'mount',
  'network',
  'network-name',
]
const RESTRICTORS = ['LoadRestrictionsRootOnly', 'LoadRestrictionsNone']

export const kustomize: Command = defineCommand({
  name: 'kustomize',
  use: 'DIR [flags] [options]',
  long: 'Build the resources of a kustomization.yaml and print them.\n\nDIR is the folder with the kustomization; the current one when it is left out.',
  examples: `# Build the current folder
kubectl kustomize

# Build some other folder
kubectl kustomize /home/config/production`,
  flags: {
    'as-current-user': flag(bool, false, 'Run functions as the user of this process. Functions are not built.'),
    'enable-alpha-plugins': flag(bool, false, 'Run plugins of a kustomization. Plugins are not built.'),
    'enable-helm': flag(bool, false, 'Run helm for helmCharts. Charts are not built.'),
    env: flag(stringArray, [], 'Variables for functions. Functions are not built.', { shorthand: 'e' }),
    'helm-api-versions': flag(stringArray, [], 'API versions that charts are told of.'),
    'helm-command': flag(string, 'helm', 'The helm to run.'),
    'helm-debug': flag(bool, false, 'Let helm say more.'),
    'helm-kube-version': flag(string, '', 'The version of Kubernetes that charts are told of.'),
    'load-restrictor': flag(
      string,
      'LoadRestrictionsRootOnly',
      "With 'LoadRestrictionsNone' a kustomization may name files outside of its folder, and can no longer be moved.",
    ),
    mount: flag(strings, [], 'Mounts for functions. Functions are not built.'),
    network: flag(bool, false, 'Give functions the network. Functions are not built.'),
    'network-name': flag(string, 'bridge', 'The network of functions. Functions are not built.'),
    output: flag(string, '', 'Write to this file, or into this folder, instead.', { shorthand: 'o' }),
  },
  async run({ args, flags, changed, cwd, stdout, stderr, clock }) {
    if (args.length > 1) throw new KubectlError('specify one path to kustomization.yaml')
    const restrictor = flags['load-restrictor']
    if (!RESTRICTORS.includes(restrictor)) {
      throw new KubectlError(
        `illegal flag value --load-restrictor ${restrictor}; legal values: [${RESTRICTORS.join(' ')}]`,
      )
    }
    const asked = NOT_BUILT.find((name) => changed.has(name))
    if (asked !== undefined) throw new KubectlError(`--${asked} is not built yet`)
    const text = await kustomizeText(args[0] ?? '.', cwd, {
      unrestricted: restrictor === 'LoadRestrictionsNone',
      keepOrder: false,
      told: { stderr, clock },
    })
    const { output } = flags
    if (output === '') return void stdout.write(text)
    const path = resolve(cwd, output)
    const isFolder = await stat(path).then(
      (info) => info.isDirectory(),
      () => false,
    )
    if (isFolder) return writeEach(path, text)
    return writeFile(path, text)
  },
})

/** A file for each resource, named by what it is. */
async function writeEach(folder: string, text: string): Promise<void> {
  const { parseYaml } = await import('#lib/yaml.ts')
  for (const document of text.split(/^---\n/m)) {
    const { apiVersion, kind, metadata } = parseYaml(document) as unknown as Record<string, string> & {
      metadata: { name: string; namespace?: string }
    }
    const place = metadata.namespace === undefined ? [] : [metadata.namespace]
    const words = [...place, ...[apiVersion, kind, metadata.name].map((word) => (word ?? '').toLowerCase())]
    // No name leads out of the folder.
    await writeFile(join(folder, `${words.join('_').replaceAll(/[/\\]/g, '_')}.yaml`), document)
  }
}
