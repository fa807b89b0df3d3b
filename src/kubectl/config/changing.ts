/** The commands of `kubectl config` that change a kubeconfig, except set-credentials in credentials.ts. */
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { configFiles, modifyConfiguration, readConfiguration } from './files.ts'
import { changedConfiguration } from './properties.ts'
import { type SectionName, withStanza } from './stanzas.ts'

/** Prints the help before the error, as upstream does for these commands. */
export async function helpAndFail({ stdout, help }: Invocation, message: string): Promise<never> {
  stdout.write(await help())
  throw new KubectlError(message)
}

/** Throws KubectlError if the file of a flag does not exist. */
export async function requireFile(name: string, file: string, cwd: string): Promise<void> {
  await stat(resolve(cwd, file)).catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === 'ENOENT' ? 'no such file or directory' : cause.message
    throw new KubectlError(`could not stat ${name} file ${file}: stat ${file}: ${why}`, { cause })
  })
}

/** The file path in the form that kubeconfigs use. */
export async function embedded(file: string, cwd: string): Promise<string> {
  return (await readFile(resolve(cwd, file))).toString('base64')
}

function deletion(section: SectionName, what: string): Command {
  return defineCommand({
    name: `delete-${what}`,
    use: 'NAME [options]',
    long: `Delete a ${what} from the kubeconfig.`,
    examples: `# Delete the ${what} minikube\nkubectl config delete-${what} minikube`,
    flags: {},
    completes: { kubeconfig: section },
    async run(invocation) {
      const { args, stdout, stderr, help } = invocation
      const kubeconfigs = await configFiles(invocation)
      const config = await readConfiguration(kubeconfigs)
      const [name = ''] = args
      if (args.length !== 1) {
        if (what === 'user') throw usageError(invocation, 'user to delete is required')
        stdout.write(await help())
        return
      }
      if (!config[section].has(name))
        throw new KubectlError(`cannot delete ${what} ${name}, not in ${kubeconfigs.target}`)
      if (section === 'contexts' && config.currentContext === name) {
        stderr.write(
          'warning: this removed your active context, use "kubectl config use-context" to select a different one\n',
        )
      }
      await modifyConfiguration(kubeconfigs, withStanza(config, section, name, undefined), { relativePaths: true })
      stdout.write(`deleted ${what} ${name} from ${kubeconfigs.target}\n`)
    },
  })
}

export const deleteCluster: Command = deletion('clusters', 'cluster')
export const deleteContext: Command = deletion('contexts', 'context')
export const deleteUser: Command = deletion('users', 'user')

export const renameContext: Command = defineCommand({
  name: 'rename-context',
  use: 'CONTEXT_NAME NEW_NAME [options]',
  long: 'Rename a context of the kubeconfig.\n\nCONTEXT_NAME is the context to rename and NEW_NAME its new name. The current-context field follows if it names this context.',
  examples: '# Rename context old-name to new-name\nkubectl config rename-context old-name new-name',
  flags: {},
  completes: { kubeconfig: 'contexts' },
  async run(invocation) {
    const { args, stdout } = invocation
    const [from = '', to = ''] = args
    if (args.length !== 2) return helpAndFail(invocation, `Unexpected args: [${args.join(' ')}]`)
    if (to === '') throw new KubectlError('You must specify a new non-empty context name')
    const kubeconfigs = await configFiles(invocation)
    const config = await readConfiguration(kubeconfigs)
    const stanza = config.contexts.get(from)
    const refused = `cannot rename the context ${goQuote(from)}`
    if (stanza === undefined) throw new KubectlError(`${refused}, it's not in ${kubeconfigs.target}`)
    if (config.contexts.has(to)) {
      throw new KubectlError(`${refused}, the context ${goQuote(to)} already exists in ${kubeconfigs.target}`)
    }
    const renamed = withStanza(withStanza(config, 'contexts', from, undefined), 'contexts', to, stanza)
    const currentContext = config.currentContext === from ? to : config.currentContext
    await modifyConfiguration(kubeconfigs, { ...renamed, currentContext }, { relativePaths: true })
    stdout.write(`Context ${goQuote(from)} renamed to ${goQuote(to)}.\n`)
    return undefined
  },
})

export const useContext: Command = defineCommand({
  name: 'use-context',
  aliases: ['use'],
  use: 'CONTEXT_NAME [options]',
  long: 'Set the current context of the kubeconfig.',
  examples: '# Switch to the context minikube\nkubectl config use-context minikube',
  flags: {},
  completes: { kubeconfig: 'contexts' },
  async run(invocation) {
    const { args, stdout } = invocation
    const [name = ''] = args
    if (args.length !== 1) return helpAndFail(invocation, `Unexpected args: [${args.join(' ')}]`)
    const kubeconfigs = await configFiles(invocation)
    const config = await readConfiguration(kubeconfigs)
    if (name === '') throw new KubectlError('empty context names are not allowed')
    if (!config.contexts.has(name)) throw new KubectlError(`no context exists with the name: ${goQuote(name)}`)
    await modifyConfiguration(kubeconfigs, { ...config, currentContext: name }, { relativePaths: true })
    stdout.write(`Switched to context ${goQuote(name)}.\n`)
    return undefined
  },
})

export const set: Command = defineCommand({
  name: 'set',
  use: 'PROPERTY_NAME PROPERTY_VALUE [options]',
  long: 'Set one value in the kubeconfig.\n\nPROPERTY_NAME is a path with dots between its parts. PROPERTY_VALUE is the new value. Binary fields such as certificate-authority-data expect base64 unless --set-raw-bytes is set.',
  examples: `# Set the server of cluster my-cluster
kubectl config set clusters.my-cluster.server https://1.2.3.4

# Set the cluster of context my-context
kubectl config set contexts.my-context.cluster my-cluster

# Set the key of user cluster-admin without base64
kubectl config set users.cluster-admin.client-key-data cert_data_here --set-raw-bytes=true`,
  flags: {
    'set-raw-bytes': flag(bool, false, 'Write the value of a binary field as raw bytes instead of decoding base64.'),
  },
  async run(invocation) {
    const { args, stdout, flags } = invocation
    const [path = '', value = ''] = args
    if (args.length !== 2) return helpAndFail(invocation, `Unexpected args: [${args.join(' ')}]`)
    if (value === '') throw new KubectlError('you cannot use set to unset a property')
    if (path === '') throw new KubectlError('you must specify a property')
    const kubeconfigs = await configFiles(invocation)
    const changed = changedConfiguration(await readConfiguration(kubeconfigs), {
      path,
      value,
      isRaw: flags['set-raw-bytes'],
    })
    await modifyConfiguration(kubeconfigs, changed, { relativePaths: false })
    stdout.write(`Property ${goQuote(path)} set.\n`)
    return undefined
  },
})

export const unset: Command = defineCommand({
  name: 'unset',
  use: 'PROPERTY_NAME [options]',
  long: 'Remove one value from the kubeconfig.\n\nPROPERTY_NAME is a path with dots between its parts.',
  examples: `# Remove the current context
kubectl config unset current-context

# Remove the namespace of context foo
kubectl config unset contexts.foo.namespace`,
  flags: {},
  async run(invocation) {
    const { args, stdout } = invocation
    const [path = ''] = args
    if (args.length !== 1) return helpAndFail(invocation, `Unexpected args: [${args.join(' ')}]`)
    if (path === '') throw new KubectlError('you must specify a property')
    const kubeconfigs = await configFiles(invocation)
    await modifyConfiguration(kubeconfigs, changedConfiguration(await readConfiguration(kubeconfigs), { path }), {
      relativePaths: false,
    })
    stdout.write(`Property ${goQuote(path)} unset.\n`)
    return undefined
  },
})

export const setContext: Command = defineCommand({
  name: 'set-context',
  use: '[NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace] [options]',
  long: 'Set a context in the kubeconfig.\n\nIf the context exists, only the given fields change.',
  examples: `# Set only the user of context gce
kubectl config set-context gce --user=cluster-admin`,
  flags: {
    current: flag(bool, false, 'Modify the current context.'),
    cluster: flag(string, '', 'Cluster of the context.'),
    user: flag(string, '', 'User of the context.'),
    namespace: flag(string, '', 'Namespace of the context.', { shorthand: 'n' }),
  },
  completes: { kubeconfig: 'contexts' },
  completesFlags: { namespace: { names: 'namespace' } },
  async run(invocation) {
    const { args, flags, changed, stdout } = invocation
    if (args.length > 1) return helpAndFail(invocation, `Unexpected args: [${args.join(' ')}]`)
    const [given = ''] = args
    if (given === '' && !flags.current) throw new KubectlError('you must specify a non-empty context name or --current')
    if (given !== '' && flags.current) throw new KubectlError('you cannot specify both a context name and --current')
    const kubeconfigs = await configFiles(invocation)
    const config = await readConfiguration(kubeconfigs)
    const name = flags.current ? config.currentContext : given
    if (name === '') throw new KubectlError('no current context is set')
    const before = config.contexts.get(name)
    const fields: JsonObject = { ...before?.fields }
    for (const field of ['cluster', 'user', 'namespace'] as const) if (changed.has(field)) fields[field] = flags[field]
    const next = withStanza(config, 'contexts', name, { fields, origin: before?.origin ?? '' })
    await modifyConfiguration(kubeconfigs, next, { relativePaths: true })
    stdout.write(`Context ${goQuote(name)} ${before === undefined ? 'created' : 'modified'}.\n`)
    return undefined
  },
})

const CLUSTER_FLAGS = {
  server: flag(string, '', 'Address of the server.'),
  'tls-server-name': flag(string, '', "Server name to verify the server's certificate against."),
  'insecure-skip-tls-verify': flag(bool, false, "Skip verification of the server's certificate."),
  'certificate-authority': flag(string, '', 'File with the certificate of the certificate authority.'),
  'embed-certs': flag(bool, false, 'Embed the certificate in the kubeconfig.'),
  'proxy-url': flag(string, '', 'Proxy URL for requests to the server.'),
}

export const setCluster: Command = defineCommand({
  name: 'set-cluster',
  use: 'NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] [--tls-server-name=example.com] [options]',
  long: 'Set a cluster in the kubeconfig.\n\nIf the cluster exists, only the given fields change.',
  examples: `# Set only the server of cluster e2e
kubectl config set-cluster e2e --server=https://1.2.3.4

# Embed the certificate of the authority in cluster e2e
kubectl config set-cluster e2e --embed-certs --certificate-authority=~/.kube/e2e/kubernetes.ca.crt

# Skip certificate verification for cluster e2e
kubectl config set-cluster e2e --insecure-skip-tls-verify=true`,
  flags: CLUSTER_FLAGS,
  async run(invocation) {
    const { args, stdout, flags, cwd } = invocation
    const [name = ''] = args
    if (args.length !== 1) return helpAndFail(invocation, `Unexpected args: [${args.join(' ')}]`)
    if (name === '') throw new KubectlError('you must specify a non-empty cluster name')
    const { 'certificate-authority': authority } = flags
    if (flags['insecure-skip-tls-verify'] && authority !== '') {
      throw new KubectlError('you cannot specify a certificate authority and insecure mode at the same time')
    }
    if (flags['embed-certs']) {
      if (authority === '') throw new KubectlError('you must specify a --certificate-authority to embed')
      await requireFile('certificate-authority', authority, cwd)
    }
    const kubeconfigs = await configFiles(invocation)
    const config = await readConfiguration(kubeconfigs)
    const before = config.clusters.get(name)
    const fields = await clusterFields({ ...before?.fields }, invocation)
    const next = withStanza(config, 'clusters', name, { fields, origin: before?.origin ?? '' })
    await modifyConfiguration(kubeconfigs, next, { relativePaths: true })
    stdout.write(`Cluster ${goQuote(name)} set.\n`)
    return undefined
  },
})

async function clusterFields(fields: JsonObject, invocation: Invocation<typeof CLUSTER_FLAGS>): Promise<JsonObject> {
  const { flags, changed, cwd } = invocation
  if (changed.has('server')) {
    fields['server'] = flags.server
    // A new server invalidates the old server name.
    delete fields['tls-server-name']
  }
  if (changed.has('tls-server-name')) fields['tls-server-name'] = flags['tls-server-name']
  // Upstream treats this flag as set even if it is not given.
  fields['insecure-skip-tls-verify'] = flags['insecure-skip-tls-verify']
  if (flags['insecure-skip-tls-verify']) {
    delete fields['certificate-authority']
    delete fields['certificate-authority-data']
  }
  const { 'certificate-authority': authority } = flags
  if (changed.has('certificate-authority')) {
    delete fields['insecure-skip-tls-verify']
    delete fields['certificate-authority']
    delete fields['certificate-authority-data']
    if (flags['embed-certs']) fields['certificate-authority-data'] = await embedded(authority, cwd)
    else fields['certificate-authority'] = resolve(cwd, authority)
  }
  if (changed.has('proxy-url')) fields['proxy-url'] = flags['proxy-url']
  return fields
}
