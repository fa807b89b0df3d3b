/** Combines the authorizers of `--authorization-mode` into one, in order. */
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { type Access, aggregatedText, type Authorizer, noOpinion, type RuleLists, type Verdict } from '../authorizer.ts'
import type { User } from '../user.ts'
import { alwaysAllow, alwaysDeny, privilegedGroup } from './fixed.ts'
import { createWebhookAuthorizer, type WebhookAuthorizerOptions } from './webhook.ts'

export type AuthorizationMode = 'AlwaysAllow' | 'AlwaysDeny' | 'Node' | 'RBAC' | 'Webhook'

/** The dependencies of the modes. */
export interface AuthorizerParts {
  readonly rbac?: Authorizer
  readonly node?: Authorizer
  readonly webhook?: WebhookAuthorizerOptions
  readonly metrics?: ServerMeters | undefined
}

/**
 * Members of `system:masters` pass before any mode. Throws for an unknown or repeated mode and for a missing
 * dependency.
 */
export function createAuthorizer(modes: readonly string[], parts: AuthorizerParts): Authorizer {
  if (modes.length === 0) throw new Error('at least one authorization-mode must be passed')
  if (new Set(modes).size < modes.length) {
    throw new Error(`authorization-mode ${JSON.stringify(modes)} has mode specified more than once`)
  }
  const count = createDecisionCounter(parts.metrics)
  const named = modes.map((mode) => count(authorizerOf(mode, parts), mode, mode.toLowerCase()))
  return unionOf([privilegedGroup, ...named])
}

/** One authorizer of `--authorization-config`. */
export interface ConfiguredAuthorizer {
  readonly type: AuthorizationMode
  readonly name: string
  /** Only for the type Webhook. */
  readonly webhook?: WebhookAuthorizerOptions
}

/** The authorizers of `--authorization-config`. The list can change at run time. */
export interface AuthorizerChain {
  readonly first: readonly ConfiguredAuthorizer[]
  /** Calls back with each later list. `apply` throws for an invalid one. */
  follow(apply: (next: readonly ConfiguredAuthorizer[]) => void): void
}

/** Like `createAuthorizer`. A type that is absent at the start lacks its dependencies and cannot be added later. */
export function createChainAuthorizer(chain: AuthorizerChain, parts: Omit<AuthorizerParts, 'webhook'>): Authorizer {
  const count = createDecisionCounter(parts.metrics)
  const build = (list: readonly ConfiguredAuthorizer[]): Authorizer =>
    unionOf([
      privilegedGroup,
      ...list.map(({ type, name, webhook }) =>
        count(authorizerOf(type, { ...parts, ...(webhook && { webhook: { ...webhook, name } }) }), type, name),
      ),
    ])
  let current = build(chain.first)
  const startedWith = new Set(chain.first.map(({ type }) => type))
  chain.follow((next) => {
    for (const { type } of next) {
      if ((type === 'Node' || type === 'RBAC') && !startedWith.has(type)) {
        throw new Error(`authorizer type ${type} is not allowed if it was not enabled at initial server startup`)
      }
    }
    current = build(next)
  })
  return {
    authorize: (user, access) => current.authorize(user, access),
    rulesFor: (user, namespace) => current.rulesFor(user, namespace),
  }
}

function authorizerOf(mode: string, { rbac, node, webhook, metrics }: AuthorizerParts): Authorizer {
  const known: Readonly<Record<AuthorizationMode, Authorizer | undefined>> = {
    AlwaysAllow: alwaysAllow,
    AlwaysDeny: alwaysDeny,
    Node: node,
    RBAC: rbac,
    Webhook: webhook && createWebhookAuthorizer({ metrics, ...webhook }),
  }
  if (!Object.hasOwn(known, mode)) throw new Error(`authorization-mode "${mode}" is not a valid mode`)
  const authorizer = known[mode as AuthorizationMode]
  if (authorizer === undefined) throw new Error(`authorization-mode "${mode}" needs settings of its own: give them too`)
  return authorizer
}

/** Counts final decisions by authorizer. */
function createDecisionCounter(
  meters: ServerMeters = createServerMeters(),
): (authorizer: Authorizer, type: string, name: string) => Authorizer {
  const decisions = meters.family('apiserver_authorization_decisions_total')
  return (authorizer, type, name) => {
    const counted = (verdict: Verdict): Verdict => {
      if (isFinal(verdict)) decisions.labels(type, name, verdict.allowed ? 'allowed' : 'denied').inc()
      return verdict
    }
    return {
      authorize(user, access) {
        const verdict = authorizer.authorize(user, access)
        return verdict instanceof Promise ? verdict.then(counted) : counted(verdict)
      },
      rulesFor: (user, namespace) => authorizer.rulesFor(user, namespace),
    }
  }
}

/** The first allow or deny counts; otherwise the verdict joins all reasons, one per line. */
export function unionOf(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize: (user, access) => ask({ authorizers, user, access }, 0, []),
    rulesFor: (user, namespace) => joinRules(authorizers.map((one) => one.rulesFor(user, namespace))),
  }
}

interface Question {
  readonly authorizers: readonly Authorizer[]
  readonly user: User
  readonly access: Access
}

/** Runs synchronously as long as the authorizers do. */
function ask(question: Question, from: number, verdicts: Verdict[]): Verdict | Promise<Verdict> {
  const { authorizers, user, access } = question
  for (let at = from; at < authorizers.length; at++) {
    const verdict = (authorizers[at] as Authorizer).authorize(user, access)
    if (verdict instanceof Promise) {
      return verdict.then((later) => (isFinal(later) ? later : ask(question, at + 1, [...verdicts, later])))
    }
    if (isFinal(verdict)) return verdict
    verdicts.push(verdict)
  }
  const reason = verdicts.map((one) => one.reason).filter((text) => text !== '')
  const errors = verdicts.flatMap(({ error }) => (error === undefined ? [] : [error]))
  const verdict = noOpinion(reason.join('\n'))
  return errors.length === 0 ? verdict : { ...verdict, error: aggregatedText(errors) }
}

function isFinal({ allowed, denied }: Verdict): boolean {
  return allowed || denied
}

function joinRules(lists: readonly RuleLists[]): RuleLists {
  const errors = lists.flatMap(({ error }) => (error === undefined ? [] : [error]))
  const joined: RuleLists = {
    resourceRules: lists.flatMap(({ resourceRules }) => resourceRules),
    nonResourceRules: lists.flatMap(({ nonResourceRules }) => nonResourceRules),
    incomplete: lists.some(({ incomplete }) => incomplete),
  }
  return errors.length === 0 ? joined : { ...joined, error: aggregatedText(errors) }
}
