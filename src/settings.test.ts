/** Checks that the program uses every flag and configuration field that it accepts, or lists it as unused. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

import { SCHEDULER_FLAGS } from '#cmd/scheduler/flags.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import type { Schema, StructSchema } from '#meta/schema.ts'
import { CONFIGURATION } from '#scheduler/configuration/configuration.ts'
import { ARGS } from '#scheduler/configuration/plugin-args.ts'

const SRC = new URL('.', import.meta.url)

/** All words in the files that use settings, without those that only declare, default, validate or print them. */
function wordsOf(where: RegExp, except: RegExp): ReadonlySet<string> {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'))
  const used = files.filter((path) => path.endsWith('.ts') && where.test(path) && !except.test(path))
  return new Set(used.flatMap((path) => readFileSync(new URL(path, SRC), 'utf8').match(/[\w-]+/g) ?? []))
}

describe('command-line flags', () => {
  it('of kube-scheduler are all used or listed as unused', () => {
    const words = wordsOf(/./, /\.(test|fixture)\.ts$|(?<!log-)flags\.ts$|configz/)
    const flags = Object.values(SCHEDULER_FLAGS).flatMap((group) => Object.entries(group as FlagGroup))
    const claimed = flags.filter(([, { idle, unsupported }]) => (idle ?? unsupported) === undefined)
    assert.deepEqual(
      claimed.map(([name]) => name).filter((name) => !words.has(name)),
      [],
    )
  })
})

/** Paths of the leaf fields, without embedded API objects. */
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

describe('fields of configuration files', () => {
  const words = wordsOf(/^scheduler\/|^cmd\/scheduler/, /\.(test|fixture)\.ts$|flags\.ts$|configuration\/(?!profiles)/)
  const settings = wordsOf(/^component\/|^cmd\//, /\.(test|fixture)\.ts$|flags?\.ts$|flags\//)
  const flags = new Map(CONFIGURATION.options.map(({ path, flag = '' }) => [path, flag]))
  const isUsed = (path: string): boolean =>
    words.has(path.slice(path.lastIndexOf('.') + 1)) || settings.has(flags.get(path) ?? '')

  it('of KubeSchedulerConfiguration are all used or listed as unused', () => {
    // Validation rejects every value but one.
    const fixed = new Set(['leaderElection.resourceLock'])
    const idle = new Set(CONFIGURATION.options.flatMap((option) => (option.idle === undefined ? [] : [option.path])))
    const claimed = leaves(CONFIGURATION.schema).filter((path) => !idle.has(path) && !fixed.has(path))
    assert.deepEqual(
      claimed.filter((path) => !isUsed(path)),
      [],
    )
  })

  for (const [plugin, { fields }] of ARGS) {
    it(`of ${plugin} arguments are all used`, () => {
      assert.deepEqual(
        fields.filter((name) => !isUsed(name)),
        [],
      )
    })
  }
})
