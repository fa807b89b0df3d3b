/** The HTTP routes below `/v3/tokens`: the caller's sessions and API tokens. */
import { badRequestError, notFoundError } from '#meta/status-errors.ts'
import { epochMsOf } from '#meta/time.ts'

import { type Token, Tokens as TokenKind } from '../../kinds/token.ts'
import type { User } from '../../kinds/user.ts'
import type { ManagementObjects } from '../../objects.ts'
import type { Person } from '../../person.ts'
import type { Reply, Route, RouteCall } from '../../port/route.ts'
import { isSession, MAX_API_TOKEN_MS, type Tokens } from '../tokens.ts'
import { readerOf, writerOf } from './caller.ts'
import { readFields } from './fields.ts'
import { reply, tokenView } from './views.ts'

export interface TokenParts {
  readonly objects: ManagementObjects
  readonly tokens: Tokens
  readonly isAdministrator: (user: User) => boolean
}

const FIELDS = { description: 'string?', ttlSeconds: 'count?', cluster: 'string?', readOnly: 'boolean?' } as const

export function tokenRoutes(parts: TokenParts): Route[] {
  const access = 'person'
  return [
    { method: 'GET', path: '/v3/tokens', access, serve: (call) => listTokens(parts, call) },
    { method: 'POST', path: '/v3/tokens', access, serve: (call) => createToken(parts, call) },
    { method: 'DELETE', path: '/v3/tokens/:name', access, serve: (call) => deleteToken(parts, call) },
  ]
}

function listTokens({ tokens }: TokenParts, call: RouteCall): Reply {
  const { user, token: current } = readerOf(call)
  const items = tokens.ofUser(user.metadata.name ?? '').map((token) => ({
    ...tokenView(token),
    isCurrent: token.metadata.name === current.metadata.name,
  }))
  return reply(200, { items })
}

async function createToken({ objects, tokens }: TokenParts, call: RouteCall): Promise<Reply> {
  const { user, token: current } = writerOf(call)
  const { ttlSeconds, cluster, ...fields } = await readFields(call, FIELDS)
  if (cluster === '') throw badRequestError('The field "cluster" must not be empty')
  const lifetimeMs = lifetimeOf(current, ttlSeconds, objects.clock.now())
  const plan = { ...fields, cluster, lifetimeMs, user: user.metadata.name ?? '', type: 'api' } as const
  const { text, token } = await tokens.create(plan)
  return reply(201, { token: text, ...tokenView(token) })
}

/** The text of a new API token of the caller. */
export async function createOwnToken(
  { objects, tokens }: Pick<TokenParts, 'objects' | 'tokens'>,
  { user, token: current }: Person,
  { description, cluster }: { readonly description: string; readonly cluster: string | undefined },
): Promise<string> {
  const lifetimeMs = lifetimeOf(current, undefined, objects.clock.now())
  const plan = { description, cluster, lifetimeMs, user: user.metadata.name ?? '', type: 'api' } as const
  return (await tokens.create(plan)).text
}

/** A token that an API token makes does not outlive it: otherwise one that leaked would never end. */
function lifetimeOf(current: Token, ttlSeconds: number | undefined, nowMs: number): number {
  const leftMs = isSession(current) ? MAX_API_TOKEN_MS : Math.max(1, epochMsOf(current.spec.expiresAt) - nowMs)
  if (ttlSeconds === undefined) return leftMs
  return ttlSeconds * 1000 > MAX_API_TOKEN_MS ? ttlSeconds * 1000 : Math.min(leftMs, ttlSeconds * 1000)
}

async function deleteToken({ objects, tokens, isAdministrator }: TokenParts, call: RouteCall): Promise<Reply> {
  const { user } = writerOf(call)
  const { name = '' } = call.params
  const token = objects.get(TokenKind, name)
  const isOwn = token?.spec.user === user.metadata.name
  if (token === undefined || !(isOwn || isAdministrator(user))) {
    throw notFoundError({ group: TokenKind.group, resource: TokenKind.plural }, name)
  }
  await tokens.end(token)
  return reply(204)
}
