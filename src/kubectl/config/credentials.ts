/**
 * kubectl config set-credentials: sets a user with certificate, token, password, auth provider or credential plugin.
 */
import { resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { type Changes, parsePairs } from '../label/pairs.ts'
import { embedded, helpAndFail, requireFile } from './changing.ts'
import { configFiles, modifyConfiguration, readConfiguration } from './files.ts'
import { nameOf, withStanza } from './stanzas.ts'

const FLAGS = {
  'client-certificate': flag(string, '', 'File with the client certificate.'),
  'client-key': flag(string, '', 'File with the client key.'),
  token: flag(string, '', 'Bearer token.'),
  username: flag(string, '', 'User name for basic authentication.'),
  password: flag(string, '', 'Password for basic authentication.'),
  'auth-provider': flag(string, '', 'Name of an authentication provider.'),
  'auth-provider-arg': flag(strings, [], 'Argument of the provider as key=value; key- removes it.'),
  'exec-command': flag(string, '', 'Command of a credential plugin.'),
  'exec-api-version': flag(string, '', 'API version of the credential plugin.'),
  'exec-interactive-mode': flag(string, '', 'Interactive mode of the credential plugin.'),
  'exec-provide-cluster-info': flag(bool, false, 'Pass information about the cluster to the credential plugin.'),
  'exec-arg': flag(strings, [], 'Arguments of the credential plugin; they replace existing ones.'),
  'exec-env': flag(stringArray, [], 'Environment variable of the credential plugin as key=value; key- removes it.'),
  'embed-certs': flag(bool, false, 'Embed certificate and key in the kubeconfig.'),
}

type CredentialsInvocation = Invocation<typeof FLAGS>

export const setCredentials: Command = defineCommand({
  name: 'set-credentials',
  use: 'NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token] [--username=basic_user] [--password=basic_password] [--auth-provider=provider_name] [--auth-provider-arg=key=value] [--exec-command=exec_command] [--exec-api-version=exec_api_version] [--exec-arg=arg] [--exec-env=key=value] [options]',
  long: 'Set a user in the kubeconfig.\n\nIf the user exists, only the given fields change. A token and a password exclude each other.',
  examples: `# Set only the key of user cluster-admin
kubectl config set-credentials cluster-admin --client-key=~/.kube/admin.key

# Set a password for user cluster-admin
kubectl config set-credentials cluster-admin --username=admin --password=uXFGweU9l35qcif

# Use a credential plugin
kubectl config set-credentials cluster-admin --exec-command=/path/to/the/executable --exec-api-version=client.authentication.k8s.io/v1

# Remove a variable from its environment
kubectl config set-credentials cluster-admin --exec-env=var-to-remove-`,
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, stdout } = invocation
    if (args.length !== 1) return helpAndFail(invocation, `unexpected args: [${args.join(' ')}]`)
    const [name = ''] = args
    const pairs = (list: readonly string[], what: string): Promise<Changes> | Changes => {
      try {
        return parsePairs(list, what)
      } catch (error) {
        return helpAndFail(invocation, (error as Error).message)
      }
    }
    const provided = await pairs(flags['auth-provider-arg'], 'auth-provider-arg')
    const environment = await pairs(flags['exec-env'], 'exec-env')
    if (name === '') throw new KubectlError('you must specify a non-empty user name')
    await check(invocation)
    const kubeconfigs = await configFiles(invocation)
    const config = await readConfiguration(kubeconfigs)
    const before = config.users.get(name)
    const fields: JsonObject = { ...before?.fields }
    await setCertificates(fields, invocation)
    setProvider(fields, invocation, provided)
    setPlugin(fields, invocation, environment)
    setSecrets(fields, invocation)
    const next = withStanza(config, 'users', name, { fields, origin: before?.origin ?? '' })
    await modifyConfiguration(kubeconfigs, next, { relativePaths: true })
    stdout.write(`User ${goQuote(name)} set.\n`)
    return undefined
  },
})

async function check({ flags, changed, cwd }: CredentialsInvocation): Promise<void> {
  const methods = [
    ...(flags.token === '' ? [] : ['--token']),
    ...(flags.username === '' && flags.password === '' ? [] : ['--username/--password']),
  ]
  if (methods.length > 1) {
    throw new KubectlError(
      `you cannot specify more than one authentication method at the same time: ${methods.join(', ')}`,
    )
  }
  if (flags['embed-certs']) {
    const files = (['client-certificate', 'client-key'] as const).filter((name) => flags[name] !== '')
    if (files.length === 0) throw new KubectlError('you must specify a --client-certificate or --client-key to embed')
    for (const name of files) await requireFile(name, flags[name], cwd)
  }
  if (
    changed.has('exec-interactive-mode') &&
    !['IfAvailable', 'Always', 'Never'].includes(flags['exec-interactive-mode'])
  ) {
    throw new KubectlError('invalid interactive mode type, can be only IfAvailable, Never, Always')
  }
}

async function setCertificates(fields: JsonObject, { flags, changed, cwd }: CredentialsInvocation): Promise<void> {
  for (const name of ['client-certificate', 'client-key'] as const) {
    if (!changed.has(name)) continue
    delete fields[name]
    delete fields[`${name}-data`]
    if (flags['embed-certs']) fields[`${name}-data`] = await embedded(flags[name], cwd).catch(() => '')
    else fields[name] = resolve(cwd, flags[name])
  }
}

function setSecrets(fields: JsonObject, { flags, changed }: CredentialsInvocation): void {
  for (const name of ['token', 'username', 'password'] as const) if (changed.has(name)) fields[name] = flags[name]
  const isBasic = flags.username !== '' || flags.password !== ''
  if (flags.token === '' && isBasic) delete fields['token']
  if (flags.token !== '' && !isBasic) {
    delete fields['username']
    delete fields['password']
  }
}

function setProvider(fields: JsonObject, { flags, changed }: CredentialsInvocation, { set, removed }: Changes): void {
  const name = flags['auth-provider']
  const before = memberOf(fields, 'auth-provider')
  const isNew = changed.has('auth-provider') && before?.['name'] !== name
  const provider: JsonObject | undefined = isNew ? { name } : before
  if (provider === undefined) return
  const config = new Map(Object.entries(memberOf(provider, 'config') ?? {}))
  for (const key of removed) config.delete(key)
  for (const [key, value] of set) config.set(key, value)
  // An existing empty map is written as {}; a map that was never set is null.
  fields['auth-provider'] = { ...provider, config: Object.fromEntries(config) }
}

function setPlugin(fields: JsonObject, { flags, changed }: CredentialsInvocation, { set, removed }: Changes): void {
  const before = memberOf(fields, 'exec')
  if (before === undefined && !changed.has('exec-command')) return
  const exec: JsonObject = { ...before }
  if (changed.has('exec-command')) {
    exec['command'] = flags['exec-command']
    delete exec['args']
  }
  if (changed.has('exec-api-version')) exec['apiVersion'] = flags['exec-api-version']
  if (flags['exec-arg'].length > 0) exec['args'] = [...flags['exec-arg']]
  if (changed.has('exec-interactive-mode')) exec['interactiveMode'] = flags['exec-interactive-mode']
  if (changed.has('exec-provide-cluster-info')) exec['provideClusterInfo'] = flags['exec-provide-cluster-info']
  if (flags['exec-env'].length > 0) exec['env'] = environmentOf(exec['env'], { set, removed })
  fields['exec'] = exec
}

function environmentOf(before: JsonValue | undefined, { set, removed }: Changes): JsonValue {
  const left = new Map(set)
  const kept = (Array.isArray(before) ? before : [])
    .filter((one): one is JsonObject => isJsonObject(one) && !removed.includes(nameOf(one)))
    .map((one) => {
      const name = nameOf(one)
      const value = left.get(name)
      left.delete(name)
      return value === undefined ? one : { name, value }
    })
  return [...kept, ...[...left].map(([name, value]) => ({ name, value }))]
}

function memberOf(value: JsonObject, name: string): JsonObject | undefined {
  const found = value[name]
  return found !== undefined && isJsonObject(found) ? found : undefined
}
