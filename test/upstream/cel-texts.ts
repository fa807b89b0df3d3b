/**
 * Sends malformed CEL texts to upstream's kube-apiserver as validation rules and compiles them with our engine: the
 * error messages must be identical.
 *
 *     node test/upstream/cel-texts.ts [seed [rounds]]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createEnvironment } from '#cel/environment.ts'
import { BOOL, type CelType, INT, listOf, mapOf, type ObjectType, STRING } from '#cel/type.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'

import { ask } from './ours.ts'
import { type Reference, startReference } from './reference.ts'

const RULES_IN_ONE = 60

const FIELDS: Readonly<Record<string, CelType>> = { a: INT, b: BOOL, s: STRING, l: listOf(INT), m: mapOf(STRING, INT) }

const SCHEMA = {
  type: 'object',
  properties: {
    a: { type: 'integer' },
    b: { type: 'boolean' },
    s: { type: 'string', maxLength: 5 },
    l: { type: 'array', maxItems: 3, items: { type: 'integer' } },
    m: { type: 'object', maxProperties: 3, additionalProperties: { type: 'integer' } },
  },
}

const SELF: ObjectType = {
  kind: 'object',
  name: 'selfType0',
  field: (name) => FIELDS[name] && { type: FIELDS[name], jsonName: name },
}

const WHOLE = [
  'self.a > 1 && self.b',
  'self.l.all(x, x > 0)',
  'has(self.a) ? self.a : 2',
  "{'a': 1, 'b': self.a}",
  '[1, 2, self.a,]',
  "self.m['k'] + -1",
  'Foo{a: 1, ?b: 2}',
  'self.l.map(x, x, [x]).exists(y, y == 1)',
  "self.s.startsWith('x') || !self.b",
  'self.?a.orValue(3)',
  'a.b.c(1, 2)[?3]',
  "'a' in self.m",
  '(1 + 2) * 3 - 4 / 5 % 6',
  'optional.of(1).optMap(z, z + 1)',
  'google.protobuf.Int64Value{value: 1} == null',
  '--1 < ---2',
  "'%d'.format([1])",
  'self.l.sortBy(e, e)',
  'self.m.transformMap(k, v, v)',
]

const OPERATORS = '== != in < >= && || [ ] { } ( ) . , - ! ? : + * .?'
const WORDS = `true null 1.5 1 2u 'x' b'y' a self self.a self.l \`q\` $ " ' if has all size x é 😀 r"z" 1e400 ${'9'.repeat(20)}`
const PIECES = [...OPERATORS.split(' '), ...WORDS.split(' '), ' ', '\t', '\n', '//c\n']

/** A whole expression with up to three of its pieces left out, put in, replaced or swapped. */
function almost(random: Random): string {
  const pick = (list: readonly string[]): string => list[random.int(list.length)] ?? ''
  const pieces = pick(WHOLE).match(/\w+|'[^']*'|\s+|[^\w\s]/g) ?? []
  for (let changes = random.int(4); changes > 0; changes--) {
    const at = random.int(pieces.length + 1)
    const other = random.int(pieces.length + 1)
    const changed = [[], [pick(PIECES), pieces[at] ?? ''], [pick(PIECES)], [pieces[other] ?? '']][random.int(4)] ?? []
    pieces.splice(at, 1, ...changed)
  }
  return pieces.join('')
}

/** By index, what upstream says of the rules that do not compile. */
async function askReference(reference: Reference, rules: readonly string[]): Promise<ReadonlyMap<number, string>> {
  const properties = rules.map((rule, i) => [
    `p${i}`,
    { ...SCHEMA, 'x-kubernetes-validations': [{ rule, message: 'm' }] },
  ])
  const openAPIV3Schema = { type: 'object', properties: Object.fromEntries(properties) as unknown }
  const body = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'texts.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'texts', singular: 'text', kind: 'Text', listKind: 'TextList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All'
  const answer = await ask(reference, { method: 'POST', path, body })
  const { details } = answer.body as { details?: { causes?: { field: string; message: string }[] } }
  return new Map((details?.causes ?? []).flatMap(({ field, message }) => saidOf(field, message)))
}

function saidOf(field: string, message: string): readonly (readonly [number, string])[] {
  const index = /properties\[p(\d+)\]\.x-kubernetes-validations\[0\]\.rule$/.exec(field)?.[1]
  const said = /compilation failed: (.*)$/s.exec(message)?.[1]
  if (index === undefined || said === undefined) return []
  return [[Number(index), said.replaceAll(/selfType\d+/g, SELF.name)]]
}

async function main(seed: number, rounds: number): Promise<void> {
  const environment = createEnvironment({ variables: { self: SELF, oldSelf: SELF } })
  const random = createSeededRandom(seed)
  const folder = await mkdtemp(join(tmpdir(), 'cel-texts-'))
  const reference = await startReference(folder)
  const compare = async (): Promise<number> => {
    const rules = Array.from({ length: RULES_IN_ONE }, () => almost(random).trim() || 'true')
    const theirs = await askReference(reference, rules)
    const differing = rules.filter((rule, i) => {
      const compiled = environment.compile(rule)
      const ours = compiled.issues === undefined ? undefined : compiled.report
      if (ours === theirs.get(i)) return false
      process.stdout.write(`${JSON.stringify(rule)}\nours:\n${ours}\nupstream:\n${theirs.get(i)}\n\n`)
      return true
    })
    return differing.length
  }
  try {
    let differing = 0
    for (let round = 0; round < rounds; round++) differing += await compare()
    process.stdout.write(
      `${rounds * RULES_IN_ONE - differing} of ${rounds * RULES_IN_ONE} texts get the same compile errors\n`,
    )
  } finally {
    await reference.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

const [seed = '1', rounds = '10'] = process.argv.slice(2)
await main(Number(seed), Number(rounds))
