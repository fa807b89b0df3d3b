/** Parses the JSON body of a request by a table of fields, and rejects unknown fields and wrong types. */
import { badRequestError, requestEntityTooLargeError } from '#meta/status-errors.ts'

import type { RouteCall } from '../../port/route.ts'

interface FieldTypes {
  readonly string: string
  readonly boolean: boolean
  /** At least 1. */
  readonly count: number
}

/** `string?` is optional. */
type FieldRule = keyof FieldTypes | `${keyof FieldTypes}?`

type FieldOf<R> = R extends `${infer T extends keyof FieldTypes}?`
  ? FieldTypes[T] | undefined
  : R extends keyof FieldTypes
    ? FieldTypes[R]
    : never

export type Fields<S> = { readonly [K in keyof S]: FieldOf<S[K]> }

const MAX_BODY_BYTES = 64 << 10

/** Throws StatusError: 400 for an unknown, missing or wrong field, 413 for a body of more than 64 KiB. */
export async function readFields<const S extends Readonly<Record<string, FieldRule>>>(
  call: RouteCall,
  rules: S,
): Promise<Fields<S>> {
  const { 'content-length': length } = call.exchange.headers
  if (Number(length ?? 0) > MAX_BODY_BYTES) throw requestEntityTooLargeError(`limit is ${MAX_BODY_BYTES}`)
  const body = await call.readBody()
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(rules, name)) throw badRequestError(`Unknown field "${name.slice(0, 100)}"`)
  }
  for (const [name, rule] of Object.entries(rules))
    checkField(name, rule, Object.hasOwn(body, name) ? body[name] : undefined)
  // Each field was checked.
  return body as Fields<S>
}

function checkField(name: string, rule: FieldRule, value: unknown): void {
  if (value === undefined) {
    if (!rule.endsWith('?')) throw badRequestError(`The field "${name}" is required`)
    return
  }
  const type = rule.replace('?', '')
  const isRight = type === 'count' ? Number.isSafeInteger(value) && Number(value) > 0 : typeof value === type
  if (!isRight) throw badRequestError(`The field "${name}" must be a ${type === 'count' ? 'positive integer' : type}`)
}
