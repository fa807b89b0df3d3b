/** Formats users and tokens for responses, without hashes. */
import type { Token } from '../../kinds/token.ts'
import type { User } from '../../kinds/user.ts'
import type { Reply } from '../../port/route.ts'

export function userView({ metadata, spec, status }: User): object {
  return {
    name: metadata.name,
    username: spec.username,
    displayName: spec.displayName ?? spec.username,
    disabled: spec.disabled === true,
    mustChangePassword: spec.mustChangePassword === true,
    identities: spec.identities ?? [],
    groups: status?.groups ?? [],
    createdAt: metadata.creationTimestamp,
    lastLoginAt: status?.lastLoginAt,
  }
}

/** `lastUsedAt`, `cluster` and others are absent when they are not set. */
export function tokenView({ metadata, spec, status }: Token): object {
  return {
    name: metadata.name,
    type: spec.type,
    description: spec.description,
    cluster: spec.cluster,
    readOnly: spec.readOnly === true,
    createdAt: metadata.creationTimestamp,
    expiresAt: spec.expiresAt,
    lastUsedAt: status?.lastUsedAt,
    lastAddress: status?.lastAddress,
  }
}

/** An answer that no cache keeps. */
export function reply(status: number, body?: object | string, headers: readonly string[] = []): Reply {
  return { status, headers: ['Cache-Control', 'no-store', ...headers], ...(body !== undefined && { body }) }
}
