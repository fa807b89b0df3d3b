/** Evaluates the CEL expressions of `--authentication-config` that map token claims to a user. */
import { type Claims, evaluateClaims, evaluateUser, textsOf } from '#model/expressions/claims.ts'
import type { CompiledExpression } from '#model/expressions/compile.ts'

import { CredentialError } from '../authenticator.ts'
import type { User } from '../user.ts'

export interface ExpressionRule {
  readonly expression: CompiledExpression
  readonly message: string
}

/** Each replaces a claim. */
export interface ClaimExpressions {
  readonly username?: CompiledExpression | undefined
  readonly groups?: CompiledExpression | undefined
  readonly uid?: CompiledExpression | undefined
  readonly extra?: readonly { readonly key: string; readonly expression: CompiledExpression }[]
  readonly claimRules?: readonly ExpressionRule[]
  readonly userRules?: readonly ExpressionRule[]
}

export function expressedUsername(expression: CompiledExpression, claims: Claims): string {
  const name = expressedText('username', expression, claims)
  if (name === '') throw new CredentialError('oidc: empty username via CEL expression is not allowed')
  return name
}

/** The expression must yield exactly one string, which may be empty. */
export function expressedText(what: 'username' | 'uid', expression: CompiledExpression, claims: Claims): string {
  return saying(`oidc: error evaluating ${what} claim expression: `, () => {
    const value = evaluateClaims(expression, claims)
    if (typeof value !== 'string') throw new Error(`${what} claim expression must return a string`)
    return value
  })
}

export function expressedGroups(expression: CompiledExpression, claims: Claims): string[] {
  return saying('oidc: error evaluating group claim expression: ', () => textsOf(evaluateClaims(expression, claims)))
}

export function expressedExtra(mappings: ClaimExpressions['extra'] = [], claims: Claims): Record<string, string[]> {
  const values = mappings.map(({ key, expression }) => {
    const value = saying('', () => evaluateClaims(expression, claims))
    const text = `oidc: error evaluating extra claim expression: ${expression.source}: `
    return [key, saying(text, () => textsOf(value))] as const
  })
  return Object.fromEntries(values.filter(([, texts]) => texts.length > 0))
}

export function checkClaimRules(rules: readonly ExpressionRule[] = [], claims: Claims): void {
  saying('oidc: error evaluating claim validation expression: ', () =>
    check(rules, (expression) => evaluateClaims(expression, claims)),
  )
}

export function checkUserRules(rules: readonly ExpressionRule[] = [], { name, uid, groups, extra }: User): void {
  saying('oidc: error evaluating user info validation rule: ', () =>
    check(rules, (expression) => evaluateUser(expression, { username: name, uid, groups, extra })),
  )
}

/** Evaluates all rules, then reports the first that does not hold. */
function check(rules: readonly ExpressionRule[], evaluate: (expression: CompiledExpression) => unknown): void {
  const values = rules.map(({ expression }) => evaluate(expression))
  for (const [at, { expression, message }] of rules.entries()) {
    if (values[at] !== true) throw new Error(`validation expression '${expression.source}' failed: ${message}`)
  }
}

function saying<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new CredentialError(`${what}${(cause as Error).message}`, { cause })
  }
}
