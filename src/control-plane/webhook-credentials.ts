/**
 * Credentials of the server for admission webhooks: the `kubeConfigFile` of WebhookAdmissionConfiguration. Users in
 * that kubeconfig are named after the hosts for which they are used.
 */
import type { CallerCredentials } from '#apiserver/webhooks/caller.ts'
import { ProgramError } from '#lib/program.ts'
import { basicOf } from '#model/kubeconfig/credentials.ts'
import type { UserEntry } from '#model/kubeconfig/entries.ts'
import { type Kubeconfig, parseKubeconfig } from '#model/kubeconfig/reading.ts'

import type { Environment } from './environment.ts'

/** The current credentials for `<host>:<port>`; undefined: none. */
export type CredentialsFor = (hostPort: string) => CallerCredentials | undefined

/** Reloads the files that the kubeconfig names. Throws ProgramError for unusable ones. */
export async function openWebhookCredentials(
  { files, readFile }: Pick<Environment, 'files' | 'readFile'>,
  plugin: string,
  kubeConfigFile: string,
): Promise<CredentialsFor> {
  try {
    const config = await parseKubeconfig(await readFile(kubeConfigFile), kubeConfigFile)
    const users = new Map<string, () => CallerCredentials>()
    for (const [name, user] of config.users) users.set(name, await openUser(files, name, user))
    return (hostPort) => users.get(userFor(config, hostPort) ?? '')?.()
  } catch (cause) {
    const why = `cannot use kubeConfigFile "${kubeConfigFile}": ${(cause as Error).message}`
    throw new ProgramError(`failed to apply admission: couldn't init admission plugin "${plugin}": ${why}`, { cause })
  }
}

/** The user for a webhook: by its whole name, by a domain (`*.ns.svc`), the wildcard `*`, or that of the context. */
export function userFor({ users, contexts, currentContext }: Kubeconfig, hostPort: string): string | undefined {
  const withoutPort = hostPort.endsWith(':443') ? hostPort.slice(0, -':443'.length) : undefined
  const named = [hostPort, ...(withoutPort === undefined ? [] : [withoutPort])].flatMap((target) => {
    const steps = target.split('.')
    return [target, ...steps.slice(1).map((_, at) => `*.${steps.slice(at + 1).join('.')}`)]
  })
  const inContext = contexts.get(currentContext)?.user ?? ''
  return [...named, '*', inContext].find((name) => name !== '' && users.has(name))
}

async function openUser(files: Environment['files'], name: string, user: UserEntry): Promise<() => CallerCredentials> {
  for (const field of ['exec', 'auth-provider'] as const) {
    if (user[field] !== undefined) {
      throw new Error(`"${field}" of user "${name}" is not supported; use a certificate or a token`)
    }
  }
  const certificate = await openText(files, user['client-certificate-data'], user['client-certificate'])
  const key = await openText(files, user['client-key-data'], user['client-key'])
  const token = user.token ? () => user.token : await openText(files, undefined, user.tokenFile)
  return () => {
    const [pem, keyPem, bearer] = [certificate(), key(), token()?.trim() ?? '']
    return {
      ...(pem !== undefined && { certificate: pem }),
      ...(keyPem !== undefined && { key: keyPem }),
      headers: {
        ...basicOf(user),
        ...(bearer !== '' && { authorization: `Bearer ${bearer}` }),
        ...impersonationOf(user),
      },
    }
  }
}

/** Inline base64 data has precedence over the file. */
async function openText(
  files: Environment['files'],
  data: string | undefined,
  file: string | undefined,
): Promise<() => string | undefined> {
  if (data) return () => Buffer.from(data, 'base64').toString()
  return file ? files.open([file], ([text = '']) => text) : () => undefined
}

function impersonationOf(user: UserEntry): Readonly<Record<string, string | readonly string[]>> {
  const { as = '', 'as-uid': uid = '', 'as-groups': groups = [], 'as-user-extra': extra = {} } = user
  if (as === '') return {}
  return {
    'impersonate-user': as,
    ...(uid !== '' && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': groups }),
    ...Object.fromEntries(
      Object.entries(extra).map(([name, values]) => [`impersonate-extra-${encodeURIComponent(name)}`, values]),
    ),
  }
}
