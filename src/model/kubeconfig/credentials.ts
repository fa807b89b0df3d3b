/** Reads the trusted CAs and the credentials of a kubeconfig, inline or from files. */
import type { ClientTls } from '#lib/http/dial.ts'

import type { UserEntry } from './entries.ts'
import type { ClientConfig, ReadText } from './reading.ts'

/** Inline data takes precedence over files. */
export async function tlsOf({ cluster, user }: ClientConfig, readFile: ReadText): Promise<ClientTls> {
  const load = (data: string | undefined, file: string | undefined): Promise<string> | string | undefined =>
    data ? Buffer.from(data, 'base64').toString() : file ? readFile(file) : undefined
  const [ca, certificate, key] = await Promise.all([
    load(cluster['certificate-authority-data'], cluster['certificate-authority']),
    load(user['client-certificate-data'], user['client-certificate']),
    load(user['client-key-data'], user['client-key']),
  ])
  const serverName = cluster['tls-server-name']
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { serverName }),
    ...(cluster['insecure-skip-tls-verify'] === true && { insecure: true }),
  }
}

/** The header of basic authentication. */
export function basicOf({ username = '', password = '' }: UserEntry): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {}
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}
