/** kubectl kustomize: builds a kustomization and prints the resources. */
import { stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { kustomizeText } from '../manifests/kustomization.ts'

/** Flags for functions, plugins and charts. They fail, because these features do not exist here. */
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
  long: 'Build the resources of a kustomization.yaml and print them.\n\nDIR is the directory with the kustomization. The default is the current directory.',
  examples: `# Build the current directory
kubectl kustomize

# Build another directory
kubectl kustomize /home/config/production`,
  flags: {
    'as-current-user': flag(bool, false, 'Run functions as the current user. Functions are not supported.'),
    'enable-alpha-plugins': flag(bool, false, 'Enable plugins of a kustomization. Plugins are not supported.'),
    'enable-helm': flag(bool, false, 'Run helm for helmCharts. Charts are not supported.'),
    env: flag(stringArray, [], 'Environment variables for functions. Functions are not supported.', { shorthand: 'e' }),
    'helm-api-versions': flag(stringArray, [], 'API versions to pass to charts.'),
    'helm-command': flag(string, 'helm', 'Path of the helm program.'),
    'helm-debug': flag(bool, false, 'Enable debug output of helm.'),
    'helm-kube-version': flag(string, '', 'Kubernetes version to pass to charts.'),
    'load-restrictor': flag(
      string,
      'LoadRestrictionsRootOnly',
      "With 'LoadRestrictionsNone' a kustomization may read files outside of its directory, which makes it hard to relocate.",
    ),
    mount: flag(strings, [], 'Mounts for functions. Functions are not supported.'),
    network: flag(bool, false, 'Give functions network access. Functions are not supported.'),
    'network-name': flag(string, 'bridge', 'Network for functions. Functions are not supported.'),
    output: flag(string, '', 'Write the resources to this file, or to files in this directory.', { shorthand: 'o' }),
  },
  async run({ args, flags, changed, cwd, stdout, stderr, clock }) {
    if (args.length > 1) throw new KubectlError('specify one path to kustomization.yaml')
    const restrictor = flags['load-restrictor']
    if (!RESTRICTORS.includes(restrictor)) {
      throw new KubectlError(
        `illegal flag value --load-restrictor ${restrictor}; legal values: [${RESTRICTORS.join(' ')}]`,
      )
    }
    const unsupported = NOT_BUILT.find((name) => changed.has(name))
    if (unsupported !== undefined) throw new KubectlError(`--${unsupported} is not built yet`)
    const text = await kustomizeText(args[0] ?? '.', cwd, {
      unrestricted: restrictor === 'LoadRestrictionsNone',
      keepOrder: false,
      output: { stderr, clock },
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

/** Writes one file for each resource, named after the resource. */
async function writeEach(folder: string, text: string): Promise<void> {
  const { parseYaml } = await import('#lib/yaml/yaml.ts')
  for (const document of text.split(/^---\n/m)) {
    const { apiVersion, kind, metadata } = parseYaml(document) as unknown as Record<string, string> & {
      metadata: { name: string; namespace?: string }
    }
    const prefix = metadata.namespace === undefined ? [] : [metadata.namespace]
    const words = [...prefix, ...[apiVersion, kind, metadata.name].map((word) => (word ?? '').toLowerCase())]
    // File names must not lead outside of the folder.
    await writeFile(join(folder, `${words.join('_').replaceAll(/[/\\]/g, '_')}.yaml`), document)
  }
}
