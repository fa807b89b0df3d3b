/** The commands of `kubectl config` that print contexts, clusters, users or the whole kubeconfig. */
import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, usageError } from '../command.ts'
import { failuresOf, KubectlError } from '../errors.ts'
import { TabWriter } from '../print/tabs.ts'
import { goFileError, printerOf, printFlags } from '../printing.ts'
import { configFiles, readConfiguration, readStrictly } from './files.ts'
import { type Configuration, configurationValue, type SectionName, type Stanza } from './stanzas.ts'

export const currentContext: Command = defineCommand({
  name: 'current-context',
  use: '[flags] [options]',
  long: 'Print the name of the current context.',
  examples: '# Print the current context\nkubectl config current-context',
  flags: {},
  async run(invocation) {
    const config = await readConfiguration(await configFiles(invocation))
    if (config.currentContext === '') throw new KubectlError('current-context is not set')
    invocation.stdout.write(`${config.currentContext}\n`)
  },
})

function namesCommand(name: string, section: SectionName, what: string): Command {
  return defineCommand({
    name,
    use: '[flags] [options]',
    long: `Print the names of the ${what} in the kubeconfig.`,
    examples: `# List the ${what} that there are\nkubectl config ${name}`,
    flags: {},
    async run(invocation) {
      const config = await readConfiguration(await configFiles(invocation))
      const names = [...config[section].keys()].sort()
      invocation.stdout.write(['NAME', ...names].map((each) => `${each}\n`).join(''))
    },
  })
}

export const getClusters: Command = namesCommand('get-clusters', 'clusters', 'clusters')
export const getUsers: Command = namesCommand('get-users', 'users', 'users')

export const getContexts: Command = defineCommand({
  name: 'get-contexts',
  use: '[(-o|--output=)name)] [options]',
  long: 'Print one or many contexts from the kubeconfig.',
  examples: `# List all contexts
kubectl config get-contexts

# Show one context
kubectl config get-contexts my-context`,
  flags: {
    'no-headers': flag(bool, false, 'Omit the header line.'),
    output: flag(string, '', 'Output format. One of: (name).', { shorthand: 'o' }),
  },
  async run(invocation) {
    const { args, flags, stdout } = invocation
    const { output } = flags
    if (output !== '' && output !== 'name') {
      throw new KubectlError(
        `--output ${output} is not available in kubectl config get-contexts; resetting to default output format`,
      )
    }
    const config = await readConfiguration(await configFiles(invocation))
    const isKnown = (name: string): boolean => config.contexts.has(name)
    const names = args.length === 0 ? [...config.contexts.keys()] : args.filter(isKnown)
    const rows = names.sort().map((name) => (output === 'name' ? [name] : contextRow(config, name)))
    const headers = output === 'name' || flags['no-headers'] ? [] : [CONTEXT_COLUMNS]
    const writer = new TabWriter()
    for (const row of [...headers, ...rows]) writer.write(`${row.join('\t')}\n`)
    stdout.write(writer.flush())
    const missing = args.filter((name) => !isKnown(name)).map((name) => new KubectlError(`context ${name} not found`))
    const failed = failuresOf(missing)
    if (failed !== undefined) throw failed
  },
})

const CONTEXT_COLUMNS = ['CURRENT', 'NAME', 'CLUSTER', 'AUTHINFO', 'NAMESPACE']

function contextRow({ contexts, currentContext: current }: Configuration, name: string): string[] {
  const { cluster = '', user = '', namespace = '' } = (contexts.get(name) as Stanza).fields as Record<string, string>
  return [name === current ? '*' : ' ', name, cluster, user, namespace]
}

export const view: Command = defineCommand({
  name: 'view',
  use: '[flags] [options]',
  long: 'Print the kubeconfig, merged from all files or from a single one.\n\nUse --output jsonpath={...} to extract single values.',
  examples: `# Print the merged kubeconfig
kubectl config view

# Print it with certificates and secrets
kubectl config view --raw

# Print the password of user e2e
kubectl config view -o jsonpath='{.users[?(@.name == "e2e")].user.password}'`,
  flags: {
    ...printFlags(),
    output: flag(
      string,
      'yaml',
      'Output format. One of: (json, yaml, kyaml, name, go-template, go-template-file, template, templatefile, jsonpath, jsonpath-as-json, jsonpath-file).',
      { shorthand: 'o' },
    ),
    merge: flag(bool, true, 'Merge all kubeconfig files.'),
    raw: flag(bool, false, 'Show certificate data, keys and secrets.'),
    flatten: flag(bool, false, 'Embed the referenced files, so that the kubeconfig is self-contained.'),
    minify: flag(bool, false, 'Remove everything that the current context does not use.'),
  },
  async run(invocation) {
    const { args, flags, cwd, stdout } = invocation
    if (args.length > 0) throw usageError(invocation, `unexpected arguments: [${args.join(' ')}]`)
    const kubeconfigs = await configFiles(invocation)
    const printer = await printerOf(invocation, { keepOrder: true })
    if (!flags.merge && !kubeconfigs.isExplicit)
      throw new KubectlError('if merge==false a precise file must be specified')
    const whole = flags.merge ? await readConfiguration(kubeconfigs) : await readStrictly(flags.kubeconfig, cwd)
    const chosen = flags.minify ? minified({ ...whole, currentContext: flags.context || whole.currentContext }) : whole
    const shown = flags.flatten ? await flattened(chosen, cwd) : flags.raw ? chosen : redacted(chosen)
    printer.print(configurationValue(shown), stdout)
  },
})

/** Removes everything that the current context does not use. Throws KubectlError. */
export function minified(config: Configuration): Configuration {
  const { currentContext: name } = config
  if (name === '') throw new KubectlError('current-context must exist in order to minify')
  const context = config.contexts.get(name)
  if (context === undefined) throw new KubectlError(`cannot locate context ${name}`)
  const only = (section: SectionName, key: unknown, what: string): Map<string, Stanza> => {
    if (typeof key !== 'string' || key === '') return new Map()
    const found = config[section].get(key)
    if (found === undefined) throw new KubectlError(`cannot locate ${what} ${key}`)
    return new Map([[key, found]])
  }
  return {
    ...config,
    contexts: new Map([[name, context]]),
    clusters: only('clusters', context.fields['cluster'], 'cluster'),
    users: only('users', context.fields['user'], 'user'),
  }
}

/** Replaces secrets with a fixed text. */
export function redacted(config: Configuration): Configuration {
  const hide = (fields: Readonly<JsonObject>, names: readonly string[], text: string): JsonObject =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, names.includes(name) ? text : value]))
  const bytes = ['client-key-data', 'client-certificate-data', 'certificate-authority-data']
  const each = (stanzas: ReadonlyMap<string, Stanza>): Map<string, Stanza> =>
    new Map(
      [...stanzas].map(([name, stanza]) => {
        const fields = hide(hide(stanza.fields, bytes, 'DATA+OMITTED'), ['token', 'password'], 'REDACTED')
        return [name, { ...stanza, fields }]
      }),
    )
  return { ...config, clusters: each(config.clusters), users: each(config.users) }
}

async function flattened(config: Configuration, cwd: string): Promise<Configuration> {
  const each = async (stanzas: ReadonlyMap<string, Stanza>, names: readonly string[]): Promise<Map<string, Stanza>> => {
    const out = new Map<string, Stanza>()
    for (const [name, stanza] of stanzas) out.set(name, { ...stanza, fields: await inlined(stanza, names, cwd) })
    return out
  }
  return {
    ...config,
    users: await each(config.users, ['client-certificate', 'client-key']),
    clusters: await each(config.clusters, ['certificate-authority']),
  }
}

async function inlined({ fields, origin }: Stanza, names: readonly string[], cwd: string): Promise<JsonObject> {
  const out: JsonObject = {}
  for (const [name, value] of Object.entries(fields)) {
    if (!names.includes(name) || typeof value !== 'string') {
      out[name] = value
      continue
    }
    if (fields[`${name}-data`] !== undefined) throw new KubectlError('cannot have values for both path and contents')
    const path = isAbsolute(value) ? value : join(resolve(cwd, dirname(origin)), value)
    const content = await readFile(path).catch((cause: Error) => {
      throw new KubectlError(goFileError(path, cause), { cause })
    })
    out[`${name}-data`] = content.toString('base64')
  }
  return out
}
