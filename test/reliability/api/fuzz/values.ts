/** Values for the fuzzer: the limits of every type, and values generated from a schema. */
import type { Random } from '#lib/random.ts'
import type { ScalarType, Schema } from '#meta/schema.ts'

export function pick<T>(random: Random, values: readonly T[]): T {
  return values[random.int(values.length)] as T
}

/** True once in `n` times. */
export function oneIn(random: Random, n: number): boolean {
  return random.int(n) === 0
}

/** Stands for a number no JavaScript value is: its text is put in when the body is written. */
export class RawNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const NUMBERS = [
  0,
  1,
  -1,
  2,
  80,
  255,
  65_535,
  65_536,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  -(2 ** 31) - 1,
  2 ** 53,
  1.5,
  -0.1,
  1e21,
  ...[
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775808',
    '-9223372036854775809',
    '18446744073709551616',
    '1e400',
    '-0',
    '1.0',
    '1E2',
    '0.30000000000000000000000000000000001',
    '9'.repeat(400),
  ].map((text) => new RawNumber(text)),
] as const

/** Keys that mean something to JavaScript, to JSON paths, to Kubernetes. */
export const STRANGE_KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '0',
  '-1',
  '$patch',
  '$retainKeys',
  '$setElementOrder/containers',
  '$deleteFromPrimitiveList/finalizers',
  'a/b',
  'a~b',
  '.',
  '..',
  'f:metadata',
  'k:{"name":"a"}',
  'ünïcode',
  '\u0000',
  '\ud800',
] as const

const TEXTS = [
  '',
  ' ',
  'a',
  'A',
  'a.b',
  'a-',
  '-a',
  '*',
  '1',
  'true',
  'null',
  '0x10',
  '1e3',
  '10.0.0.1',
  '::1',
  '10.0.0.0/8',
  '100m',
  '1Ki',
  '-1',
  '1e-999999999',
  '99999999999999999999999Ei',
  '0.0000000000000000001n',
  '2026-01-02T03:04:05Z',
  '2026-13-45T99:99:99Z',
  '9999-12-31T23:59:59Z',
  '0001-01-01T00:00:00Z',
  '1h',
  '1h1h1h',
  '9999999999h',
  '50%',
  '150%',
  'https://a.example.com/%zz',
  'a'.repeat(64),
  'a'.repeat(254),
  'a'.repeat(5000),
  '../../etc/passwd',
  '%2e%2e%2f',
  'a\u0000b',
  'a\nb',
  '\u202e',
  '\ud83d\ude00',
  '\ud800',
  '${{}}',
  '$(A)',
  '(a+)+$',
  '((((((((((a*)*)*)*)*)*)*)*)*)*',
  '[',
  '*/1 * * * *',
  '@every 1s',
  'TZ=UTC * * * * *',
  '0 0 31 2 *',
  'YQ==',
  '!!!',
  'IfNotPresent',
  'ClusterFirst',
  'Always',
  'NodePort',
  'LoadBalancer',
  'ExternalName',
  'None',
  'SCTP',
  'foregroundDeletion',
  'kubernetes.io/pvc-protection',
  '__proto__',
] as const

const NAMES = ['a', 'b', 'c', 'd', 'e', 'main', 'web', 'data'] as const

/** Few, so that requests meet. */
export function nameIn(random: Random): string {
  return oneIn(random, 40) ? pick(random, TEXTS) : pick(random, NAMES)
}

/** Anything JSON can hold, small. */
export function anyValue(random: Random, depth = 0): unknown {
  switch (random.int(depth > 3 ? 4 : 9)) {
    case 0:
      return null
    case 1:
      return pick(random, TEXTS)
    case 2:
      return pick(random, NUMBERS)
    case 3:
      return oneIn(random, 2)
    case 4:
      return []
    case 5:
      return {}
    case 6:
      return Array.from({ length: 1 + random.int(3) }, () => anyValue(random, depth + 1))
    case 7:
      return objectOf([[pick(random, STRANGE_KEYS), anyValue(random, depth + 1)]])
    default:
      return oneIn(random, 50) ? nested(20 + random.int(2000)) : objectOf([['a', anyValue(random, depth + 1)]])
  }
}

/** An object with exactly these members, `__proto__` included. */
export function objectOf(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries)
}

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

const SCALARS: Readonly<Record<ScalarType, readonly unknown[]>> = {
  string: ['a', 'b', 'web', '', ...TEXTS],
  boolean: [true, false],
  int32: [0, 1, 80, 3, ...NUMBERS],
  int64: [0, 1, 7, 2 ** 40, ...NUMBERS],
  float64: [0, 0.5, 3, 1e308],
  bytes: ['', 'YWI=', 'YW', '!'],
  quantity: ['0', '1', '500m', '64Mi', '1e3', '-1', '1.5Gi', 12, '12345678901234567890', '0.1n'],
  time: [null, '2026-01-02T03:04:05Z', '2026-01-02T03:04:05+01:00', 'now'],
  microtime: [null, '2026-01-02T03:04:05.000006Z', '2026-01-02T03:04:05Z'],
  duration: ['0s', '1m30s', '-1h', 'x'],
  'int-or-string': [0, 80, 'http', '50%', -1, 2 ** 33, ''],
}

/** Types may contain themselves. */
const MAX_DEPTH = 8

/** A value of the schema's type, mostly; each field there one time in four. */
export function valueFor(random: Random, schema: Schema, depth = 0): unknown {
  switch (schema.type) {
    case 'struct': {
      if (depth > MAX_DEPTH) return {}
      const members = [...schema.fields.values()].filter(
        ({ name }) => name !== 'kind' && name !== 'apiVersion' && name !== 'metadata' && oneIn(random, 4),
      )
      return objectOf(members.map(({ name, schema: inner }) => [name, valueFor(random, inner, depth + 1)]))
    }
    case 'list':
      return Array.from({ length: random.int(3) }, () => valueFor(random, schema.items, depth + 1))
    case 'map':
      return objectOf(
        Array.from({ length: random.int(3) }, () => [
          oneIn(random, 4) ? pick(random, STRANGE_KEYS) : pick(random, NAMES),
          valueFor(random, schema.values, depth + 1),
        ]),
      )
    case 'any':
      return anyValue(random)
    default:
      return pick(random, SCALARS[schema.type])
  }
}
