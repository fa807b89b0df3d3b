/** Selects the registry credentials that match an image, from docker's config format. Pure. */
import type { AuthConfig } from '#apis/wire/cri.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { matchesImage } from './image-match.ts'

interface RegistryEntry {
  readonly username?: string
  readonly password?: string
  readonly email?: string
  readonly auth?: string
  readonly identitytoken?: string
  readonly registrytoken?: string
}

/** By registry, with or without a path. */
export type RegistryEntries = Readonly<Record<string, RegistryEntry>>

export interface FittingEntry {
  readonly registry: string
  readonly auth: Input<AuthConfig>
  readonly email: string | undefined
}

/** Entries that match the image, longest path first. */
export function fittingEntries(image: string, entries: RegistryEntries): FittingEntry[] {
  const name = withHost(image)
  return Object.entries(entries)
    .map(([registry, entry]) => ({ registry: bare(registry), auth: authOf(entry), email: entry.email }))
    .filter(({ registry }) => matchesImage(registry, name))
    .sort((a, b) => b.registry.length - a.registry.length)
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

/** Without the server address, as in upstream: runtimes reject a host with a port. */
function authOf(entry: RegistryEntry): Input<AuthConfig> {
  const { username, password, auth = '', identitytoken = '', registrytoken = '' } = entry
  const [, user = '', secret = ''] = /^([^:]*):([\s\S]*)$/.exec(Buffer.from(auth, 'base64').toString()) ?? []
  return {
    username: username ?? user,
    password: password ?? secret,
    identityToken: identitytoken,
    registryToken: registrytoken,
  }
}
