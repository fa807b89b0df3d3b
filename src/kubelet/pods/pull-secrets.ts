/** Whom to be before a registry, from the secrets of a pod. Pure. */
import type { Secret } from '#apis/core/v1.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { coordinatesOf, type Credential, credentialHash } from '../credentials/credential.ts'
import { matchesImage } from '../credentials/image-match.ts'
import type { AuthConfig } from '../cri/runtime-messages.ts'

interface Entry {
  readonly username?: string
  readonly password?: string
  readonly email?: string
  readonly auth?: string
  readonly identitytoken?: string
  readonly registrytoken?: string
}

/** Those that fit the image, the longest path first. What cannot be read is passed over, as by kubelets. */
export function credentialsFor(image: string, secrets: readonly Secret[]): Credential[] {
  const name = withHost(image)
  const fitting = secrets
    .flatMap((secret) =>
      Object.entries(entriesOf(secret)).map(([registry, entry]) => ({ registry: bare(registry), entry, secret })),
    )
    .filter(({ registry }) => matchesImage(registry, name))
    .sort((a, b) => b.registry.length - a.registry.length)
  return fitting.map(({ entry, secret: { metadata } }) => {
    const auth = authOf(entry)
    return { auth, secret: { ...coordinatesOf(metadata), credentialHash: credentialHash(auth, entry.email) } }
  })
}

function withHost(image: string): string {
  const [first = '', ...rest] = image.split('/')
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  return hasHost ? image : `docker.io/${rest.length === 0 ? 'library/' : ''}${image}`
}

const bare = (registry: string): string =>
  registry
    .replace(/^https?:\/\//, '')
    .replace(/\/(v[12]\/?)?$/, '')
    .replace(/^index\.docker\.io/, 'docker.io')

function entriesOf({ data = {} }: Secret): Record<string, Entry> {
  try {
    const config = data['.dockerconfigjson']
    if (config !== undefined) return (JSON.parse(decoded(config)) as { auths?: Record<string, Entry> }).auths ?? {}
    const old = data['.dockercfg']
    return old === undefined ? {} : (JSON.parse(decoded(old)) as Record<string, Entry>)
  } catch {
    return {}
  }
}

const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString()

/** Without the registry, as upstream's: runtimes take a host with a port for no address. */
function authOf(entry: Entry): Input<AuthConfig> {
  const { username, password, auth = '', identitytoken = '', registrytoken = '' } = entry
  const [, user = '', secret = ''] = /^([^:]*):([\s\S]*)$/.exec(decoded(auth)) ?? []
  return {
    username: username ?? user,
    password: password ?? secret,
    identityToken: identitytoken,
    registryToken: registrytoken,
  }
}
