/** Nothing that users may set is read and then ignored without a word: a flag, or a field of a configuration file. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

import { SCHEDULER_FLAGS } from '#cmd/scheduler-flags.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import type { Schema, StructSchema } from '#meta/schema.ts'
import { CONFIGURATION, IDLE_FIELDS } from '#scheduler/configuration/configuration.ts'
import { ARGS } from '#scheduler/configuration/plugin-args.ts'

const SRC = new URL('.', import.meta.url)

/** All words in files that do more with settings than to declare, default, judge and show them. */
function wordsOf(where: RegExp, except: RegExp): ReadonlySet<string> {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'))
  const used = files.filter((path) => path.endsWith('.ts') && where.test(path) && !except.test(path))
  return new Set(used.flatMap((path) => readFileSync(new URL(path, SRC), 'utf8').match(/[\w-]+/g) ?? []))
}

describe('every flag', () => {
  it('of kube-scheduler is used, or says that it is not', () => {
    const words = wordsOf(/./, /\.(test|fixture)\.ts$|(?<!log-)flags\.ts$|configz/)
    const flags = Object.values(SCHEDULER_FLAGS).flatMap((group) => Object.entries(group as FlagGroup))
    const claimed = flags.filter(([, { idle, unsupported }]) => (idle ?? unsupported) === undefined)
    assert.deepEqual(
      claimed.map(([name]) => name).filter((name) => !words.has(name)),
      [],
    )
  })
})

/** Paths of fields that have no fields, without what is an API object of its own. */
function leaves({ fields }: StructSchema, path = ''): string[] {
  return Array.from(fields.values()).flatMap(({ name, schema }) => {
    const inner = structIn(schema)
    return inner === undefined ? [path + name] : leaves(inner, `${path}${name}.`)
  })
}

function structIn(schema: Schema): StructSchema | undefined {
  if (schema.type === 'list') return structIn(schema.items)
  return schema.type === 'struct' ? schema : undefined
}

describe('every field', () => {
  const words = wordsOf(/^scheduler\/|^cmd\/scheduler/, /\.(test|fixture)\.ts$|flags\.ts$|configuration\/(?!profiles)/)
  const isUsed = (path: string): boolean => words.has(path.slice(path.lastIndexOf('.') + 1))

  it('of KubeSchedulerConfiguration is used, or says that it is not', () => {
    // May say only one thing, and anything else is refused.
    const fixed = new Set(['leaderElection.resourceLock'])
    const claimed = leaves(CONFIGURATION.schema).filter((path) => IDLE_FIELDS[path] === undefined && !fixed.has(path))
    assert.deepEqual(
      claimed.filter((path) => !isUsed(path)),
      [],
    )
  })

  // Pods that claim devices wait, and are told why.
  for (const [plugin, { fields }] of ARGS) {
    it(`of the arguments of ${plugin} is used`, () => {
      assert.deepEqual(
        fields.filter((name) => !isUsed(name)),
        [],
      )
    })
  }
})
