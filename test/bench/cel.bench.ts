/**
 * Benchmarks CEL evaluation: typical expressions of rules and policies on a Deployment, in nanoseconds per evaluation.
 */
import { createEnvironment } from '#cel/environment.ts'
import { DYN, INT, STRING, listOf, mapOf, type CelType, type ObjectType } from '#cel/type.ts'
import type { Value } from '#cel/value.ts'
import { fromJson } from '#cel/values/json.ts'
import { fromTyped } from '#cel/values/typed.ts'

import { type Bench, compareRates } from './bench.ts'
import { measureReference } from './cel-reference.ts'
import { figure, type Table, times } from './table.ts'

const deployment = {
  metadata: { name: 'web', namespace: 'prod', labels: { app: 'web', tier: 'front', env: 'prod' } },
  spec: {
    replicas: 3,
    minReplicas: 1,
    maxReplicas: 10,
    policy: 'Always',
    hosts: ['a.example.com', 'b.example.com', 'c.example.com'],
    ports: [80, 443, 8080],
    containers: ['web', 'log', 'proxy'].map((name) => ({
      name,
      image: `registry.example.com/${name}:1.2.3`,
      port: 80,
    })),
  },
}

/** Of rules in a schema, where types are known. */
const typedRules = [
  'self.spec.replicas >= 1',
  'self.spec.minReplicas <= self.spec.replicas && self.spec.replicas <= self.spec.maxReplicas',
  "self.spec.policy == 'Always' || self.spec.policy == 'Never'",
  "self.spec.policy in ['Always', 'OnFailure', 'Never']",
  'has(self.spec.replicas)',
  '!has(self.spec.paused)',
  'self.spec.containers.all(c, c.port > 0)',
  "self.spec.containers.exists(c, c.name == 'proxy')",
  'self.spec.containers.size() <= 10',
  "self.spec.hosts.all(h, h.endsWith('.example.com'))",
  "self.metadata.name.startsWith('web')",
  "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
]

/** Of policies and match conditions, where objects are dyn. */
const dynRules = [
  'object.spec.replicas <= 5',
  "object.metadata.namespace != 'kube-system'",
  "has(object.metadata.labels) && 'env' in object.metadata.labels",
  "object.metadata.labels['env'] == 'prod'",
  "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
  "object.spec.containers.map(c, c.name).join(',') == 'web,log,proxy'",
  'object.spec.ports.filter(p, p > 100).size() == 2',
  "object.?spec.?strategy.orValue('Recreate') == 'Recreate'",
]

const object = (name: string, fields: Readonly<Record<string, CelType>>): ObjectType => ({
  kind: 'object',
  name,
  field: (field) => {
    const type = Object.hasOwn(fields, field) ? fields[field] : undefined
    return type && { type, jsonName: field }
  },
})

const container = object('Container', { name: STRING, image: STRING, port: INT })
const spec = object('Spec', {
  replicas: INT,
  minReplicas: INT,
  maxReplicas: INT,
  policy: STRING,
  paused: STRING,
  hosts: listOf(STRING),
  ports: listOf(INT),
  containers: listOf(container),
})
const metadata = object('Metadata', { name: STRING, namespace: STRING, labels: mapOf(STRING, STRING) })
const root = object('Deployment', { metadata, spec })

/** The same types as a definition would have them. */
const text = { type: 'string' }
const number = { type: 'integer' }
const schema = {
  type: 'object',
  properties: {
    metadata: {
      type: 'object',
      properties: { name: text, namespace: text, labels: { type: 'object', additionalProperties: text } },
    },
    spec: {
      type: 'object',
      properties: {
        replicas: number,
        minReplicas: number,
        maxReplicas: number,
        policy: text,
        paused: text,
        hosts: { type: 'array', items: text },
        ports: { type: 'array', items: number },
        containers: {
          type: 'array',
          items: { type: 'object', properties: { name: text, image: text, port: number } },
        },
      },
    },
  },
}

export const bench: Bench = {
  about: 'evaluation of CEL expressions, with the view of the object that each needs',
  async run({ reference }) {
    const theirs = reference ? measureReference({ typed: typedRules, dyn: dynRules, object: deployment, schema }) : {}
    const typed = { name: 'self', type: root, read: () => fromTyped(deployment, root) as Value }
    const dyn = { name: 'object', type: DYN, read: () => fromJson(deployment) }
    return [
      await table('rules of a schema', typedRules, typed, theirs),
      await table('policies, objects dyn', dynRules, dyn, theirs),
    ]
  },
}

interface Variable {
  readonly name: string
  readonly type: CelType
  readonly read: () => Value
}

/** Evaluations between two looks at the clock. */
const PER_CALL = 100

async function table(
  title: string,
  rules: readonly string[],
  { name, type, read }: Variable,
  theirs: Readonly<Record<string, number>>,
): Promise<Table> {
  const environment = createEnvironment({ variables: { [name]: type } })
  const contestants = rules.map((rule) => {
    const compiled = environment.compile(rule)
    if (compiled.issues !== undefined) throw new Error(compiled.report)
    const program = compiled.program()
    const budget = { limit: 1_000_000, spent: 0 }
    const run = (): Value => {
      let last: Value = null
      for (let turn = 0; turn < PER_CALL; turn++) last = program.evaluate({ [name]: read() }, budget)
      return last
    }
    if (run() !== true) throw new Error(`"${rule}" does not hold`)
    return { name: rule, run, perCall: PER_CALL }
  })
  const rates = await compareRates(contestants)
  return {
    title,
    columns: ['rule', 'ns', 'reference', 'times as fast'],
    rows: rates.map(({ name: rule, perSecond }) => {
      const ns = 1e9 / perSecond
      const other = theirs[rule] ?? Number.NaN
      return [rule, figure(ns), figure(other), times(other / ns)]
    }),
  }
}
