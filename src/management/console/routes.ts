/** The HTTP routes of the web console: its page, and the session from which the page learns who uses it. */
import { type ConsolePage, createConsolePage } from '#component/console/page.ts'
import type { SessionUser, SessionView } from '#component/console/session-view.ts'
import type { Random } from '#lib/random.ts'
import { failure } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import type { Memberships } from '../access/memberships.ts'
import type { Permissions } from '../access/permissions.ts'
import type { RouteVerb } from '../access/role-rules.ts'
import type { ManagementObjects } from '../objects.ts'
import type { People } from '../people/people.ts'
import type { Reply, Route, RouteCall } from '../port/route.ts'
import { acceptFreshTokens } from '../replicas/fresh-tokens.ts'

export interface ConsoleRoutesOptions {
  readonly people: Pick<People, 'providers' | 'authenticate'>
  readonly memberships: Pick<Memberships, 'isAdministrator'>
  readonly permissions: Pick<Permissions, 'may'>
  readonly objects: Pick<ManagementObjects, 'get' | 'arrives'>
  readonly random: Random
  readonly version: string
  /** Default: the page of this package. */
  readonly consolePage?: URL | undefined
}

/** The permissions by which the page decides what it offers. Each route checks them again. */
const SHOWN_RIGHTS: readonly (readonly [verb: RouteVerb, resource: string])[] = [
  ['manage', 'users'],
  ['manage', 'members'],
  ['manage', 'roles'],
  ['add', 'clusters'],
  ['add', 'clustertemplates'],
]

interface SessionParts extends ConsoleRoutesOptions {
  readonly authenticate: People['authenticate']
}

export function consoleRoutes(options: ConsoleRoutesOptions): readonly Route[] {
  const { people, objects } = options
  // The log-in may have been at another replica.
  const authenticate = acceptFreshTokens((exchange, address) => people.authenticate(exchange, address), objects)
  const parts = { ...options, authenticate }
  const page = createConsolePage({ random: options.random, folder: options.consolePage })
  const route = (path: string, serve: Route['serve']): Route => ({ method: '*', path, access: 'anyone', serve })
  return [
    route('/', (call) => servePage(page, call)),
    route('/ui/session', (call) => showSession(parts, call)),
    route('/ui/*', (call) => servePage(page, call)),
  ]
}

async function servePage(page: ConsolePage, { exchange }: RouteCall): Promise<Reply> {
  return { served: await page.serve(exchange) }
}

async function showSession(options: SessionParts, call: RouteCall): Promise<Reply> {
  const { method } = call.exchange
  if (method !== 'GET' && method !== 'HEAD')
    throw failure({ code: 405, reason: 'MethodNotAllowed', message: 'the method is not supported' })
  const user = await userOf(options, call)
  const common = { mode: 'many-clusters', version: options.version, user } as const
  const view: SessionView = user === null ? { ...common, providers: options.people.providers() } : common
  return { status: 200, body: view }
}

/** Null for credentials that are absent or not valid: the page asks for a log-in. */
async function userOf(
  { authenticate, memberships, permissions }: SessionParts,
  { exchange, address }: RouteCall,
): Promise<SessionUser | null> {
  const person = await authenticate(exchange, address).catch((error: unknown) => {
    if (!(error instanceof StatusError) || error.status.code !== 401) throw error
    return undefined
  })
  if (person === undefined) return null
  const { metadata, spec, status } = person.user
  return {
    name: metadata.name ?? '',
    username: spec.username,
    displayName: spec.displayName ?? spec.username,
    isAdministrator: memberships.isAdministrator(person.user),
    mustChangePassword: spec.mustChangePassword === true,
    groups: status?.groups ?? [],
    rights: SHOWN_RIGHTS.filter(([verb, resource]) => permissions.may(person.user, verb, resource)).map((right) =>
      right.join(' '),
    ),
  }
}
