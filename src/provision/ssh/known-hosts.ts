/** Parses the known host keys of machines from the `known_hosts` file of `ssh`. Pure. */
import { createHash } from 'node:crypto'

export interface KnownHost {
  readonly host: string
  /** `ssh-ed25519` and the like. */
  readonly type: string
  /** The format of `ssh-keygen -l`: `SHA256:…`. */
  readonly fingerprint: string
}

export function readKnownHosts(text: string): KnownHost[] {
  return text.split('\n').flatMap((line) => {
    const [host = '', type = '', key = ''] = line.trim().split(/\s+/)
    if (key === '' || host.startsWith('#') || host.startsWith('@')) return []
    const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64')
    return [{ host, type, fingerprint: `SHA256:${digest.replace(/=+$/, '')}` }]
  })
}
