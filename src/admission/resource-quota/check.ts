/**
 * Checks one write against the quotas of its namespace, and returns the new usage or a refusal. The caller passes the
 * usage in, so several writes can be charged before anything is stored. Upstream's
 * apiserver/pkg/admission/plugin/resourcequota, v1.36.
 */
import type { ResourceQuota } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { KubeObject } from '#meta/object.ts'
import { quantitySign } from '#meta/quantity.ts'
import { failure } from '#meta/status-errors.ts'
import { type Amounts, amountsOf } from '#model/pod-resources.ts'
import {
  addAmounts,
  amountsText,
  exceeding,
  growth,
  namesText,
  negativeNames,
  onlyNamed,
  withoutZeros,
} from '#model/quota/amounts.ts'
import { type Evaluator, isWithinScopes, type Scope, scopesOf } from '#model/quota/evaluator.ts'

import { refuse } from '../kit/refusal.ts'

/** A quota and its usage, including writes that are not stored yet. */
export interface Account {
  readonly quota: ResourceQuota
  readonly hard: Amounts
  readonly used: Amounts
}

export function accountOf(quota: ResourceQuota): Account {
  return { quota, hard: amountsOf(quota.status?.hard), used: amountsOf(quota.status?.used) }
}

/** Resources that need a quota: `limitedResources` of the plugin's configuration. */
export interface LimitedResource {
  readonly apiGroup?: string
  readonly resource: string
  /** Substrings of the resource names. */
  readonly matchContains?: readonly string[]
  readonly matchScopes?: readonly Scope[]
}

export interface Charge {
  readonly attributes: Attributes
  readonly evaluator: Evaluator
  readonly limited: readonly LimitedResource[]
}

/** The accounts after the write; the same array if it costs nothing. Throws StatusError to refuse. */
export async function charge(accounts: readonly Account[], write: Charge): Promise<readonly Account[]> {
  const { attributes, evaluator } = write
  const object = attributes.object as KubeObject
  const counting = accounts.filter((account) => counts(account, evaluator, object))
  for (const account of counting) requireCountable(account, write)
  if (counting.length === 0 && write.limited.length === 0) return accounts
  const usage = await evaluator.usage(object)
  const negative = negativeNames(usage)
  if (negative.length > 0) {
    throw refuse(attributes, `quota usage is negative for resource(s): ${namesText(negative)}`)
  }
  const { oldObject } = attributes
  const grown = oldObject === undefined ? usage : growth(usage, await evaluator.usage(oldObject))
  const deltas = deltasFor(counting, { usage, grown }, write)
  if (counting.length > 0 ? deltas.size === 0 : withoutZeros(grown).size === 0) return accounts
  requireCovered(accounts, { counting, usage, write })
  return accounts.map((account) => {
    const delta = deltas.get(account)
    return delta === undefined ? account : debit(account, delta, attributes)
  })
}

function counts({ quota, hard }: Account, evaluator: Evaluator, object: KubeObject): boolean {
  return evaluator.matching(hard.keys()).length > 0 && isWithinScopes(evaluator, quota, object)
}

function requireCountable({ quota, hard, used }: Account, { attributes, evaluator }: Charge): void {
  const name = quota.metadata.name ?? ''
  const matching = new Set(evaluator.matching(hard.keys()))
  const complaint = evaluator.complaint?.(matching, attributes.object as KubeObject)
  if (complaint !== undefined) throw refuse(attributes, `failed quota: ${name}: ${complaint}`)
  if ([...matching].every((resource) => used.has(resource))) return
  throw refuse(attributes, `status unknown for quota: ${name}, resources: ${namesText(matching)}`)
}

/** The cost of the write by account, without those it does not affect. */
function deltasFor(
  counting: readonly Account[],
  { usage, grown }: { readonly usage: Amounts; readonly grown: Amounts },
  { attributes, evaluator }: Charge,
): Map<Account, Amounts> {
  const { oldObject } = attributes
  const deltas = new Map<Account, Amounts>()
  for (const account of counting) {
    // An object that was not counted before is charged completely.
    const wasCounted = oldObject !== undefined && counts(account, evaluator, oldObject)
    const delta = withoutZeros(wasCounted ? grown : usage)
    if (delta.size > 0) deltas.set(account, delta)
  }
  return deltas
}

interface Coverage {
  readonly counting: readonly Account[]
  readonly usage: Amounts
  readonly write: Charge
}

/** Resources limited by configuration need a covering quota. */
function requireCovered(accounts: readonly Account[], { counting, usage, write }: Coverage): void {
  const { attributes, evaluator, limited } = write
  if (limited.length === 0) return
  const { group, plural } = attributes.kind
  const meant = limited.filter(({ apiGroup = '', resource }) => apiGroup === group && resource === plural)
  const needed = [...usage]
    .filter(([, amount]) => quantitySign(amount) > 0)
    .map(([name]) => name)
    .filter((name) => meant.some(({ matchContains = [] }) => matchContains.some((part) => name.includes(part))))
  const covered = new Set(counting.flatMap(({ hard }) => evaluator.matching(hard.keys())))
  const uncovered = needed.filter((name) => !covered.has(name))
  if (uncovered.length > 0) throw refuse(attributes, `insufficient quota to consume: ${namesText(uncovered)}`)
  const object = attributes.object as KubeObject
  const isWithin = (scope: Scope): boolean => evaluator.isWithin?.(scope, object) ?? false
  const scopes = limited.flatMap(({ matchScopes = [] }) => matchScopes.filter(isWithin))
  const matched = new Set(
    accounts.flatMap(({ quota }) =>
      scopesOf(quota)
        .filter(isWithin)
        .map(({ scopeName }) => scopeName),
    ),
  )
  const open = scopes.filter(({ scopeName }) => !matched.has(scopeName))
  if (open.length === 0) return
  const texts = open.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${values.join(' ')}]}`)
  throw failure({ code: 500, message: `insufficient quota to match these scopes: [${texts.join(' ')}]` })
}

function debit(account: Account, delta: Amounts, attributes: Attributes): Account {
  const { quota, hard, used } = account
  const requested = onlyNamed(delta, new Set(hard.keys()))
  if (requested.size === 0) return account
  const total = addAmounts(used, requested)
  // A status reports the past and cannot be refused.
  const over =
    attributes.subresource === 'status'
      ? new Set<string>()
      : exceeding(onlyNamed(total, new Set(requested.keys())), hard)
  if (over.size === 0) return { quota, hard, used: total }
  const parts = [
    `exceeded quota: ${quota.metadata.name ?? ''}`,
    `requested: ${amountsText(onlyNamed(requested, over))}`,
    `used: ${amountsText(onlyNamed(used, over))}`,
    `limited: ${amountsText(onlyNamed(hard, over))}`,
  ]
  throw refuse(attributes, parts.join(', '))
}
