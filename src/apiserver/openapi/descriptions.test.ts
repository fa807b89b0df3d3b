import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groups } from '#apis/kinds.ts'
import { schemaFor, structFor } from '#apis/schemas.ts'
import { tableNames } from '#apis/table-names.ts'
import type { StructSchema } from '#meta/schema.ts'

import { nameOf } from './definitions.ts'
import { describeDefinition, describeParameter, type FieldTexts, SHARED, TABLES } from './descriptions.ts'
import { pathsOf } from './operations.ts'

const kinds = groups.flatMap(({ versions }) => versions.flatMap((version) => version.kinds))

/** About 40 words. */
const LONGEST = 260
/** A sentence with the form of a question instead of a statement about the field. */
const QUESTION = /(?:^|\. )(?:Who|Whom|Whose|Whoever|What|When|Where|Which|Why|How)\b/
const VAGUE = /\b(?:nobody|somebody|whoever|whom|fares?|wanted|wish|tells|told|gone|so (?:many|much))\b/i

/** Every struct of every table, by its OpenAPI name without the version. */
function structsOf(type: string, home: string): StructSchema[] {
  return [...tableNames.values()].flatMap((table) => {
    try {
      const struct = structFor(table, type)
      return nameOf(struct).replace(/\.[^.]+\.[^.]+$/, '') === home ? [struct] : []
    } catch {
      return []
    }
  })
}

describe('OpenAPI descriptions', () => {
  it('exist for every kind and its structs', () => {
    const missing = kinds.flatMap((kind) => {
      const schema = schemaFor(kind)
      assert.ok(schema, kind.kind)
      const parts = ['spec', 'status'].flatMap((field) => {
        const part = schema.fields.get(field)?.schema
        return part?.type === 'struct' ? [part] : []
      })
      return [schema, ...parts].map(nameOf).filter((name) => describeDefinition(name) === '')
    })
    assert.deepEqual([...new Set(missing)], [])
  })

  it('exist for every parameter', () => {
    const facts = { schemaFor, deleteAnswersObject: () => false, customOf: () => undefined }
    const parameters = groups
      .flatMap(({ versions }) => versions.flatMap((version) => pathsOf(version.kinds, facts)))
      .flatMap(({ operations }) => operations.flatMap((one) => one.parameters))
    assert.ok(parameters.length > 1000)
    const missing = parameters.filter((one) => describeParameter(one.name, one.in, 'Pod') === '')
    assert.deepEqual([...new Set(missing.map(({ name }) => name))], [])
  })

  it('exist for most fields of every spec', () => {
    const silent = kinds.filter((kind) => {
      const spec = schemaFor(kind)?.fields.get('spec')?.schema
      if (spec?.type !== 'struct' || spec.fields.size === 0) return false
      const name = nameOf(spec)
      const described = [...spec.fields.keys()].filter((field) => describeDefinition(name, field) !== '')
      return described.length < 0.8 * spec.fields.size
    })
    assert.deepEqual(
      silent.map(({ kind }) => kind),
      [],
    )
  })

  for (const [home, table] of TABLES) {
    it(`in ${home} refer only to existing types and fields`, () => {
      const wrong = Object.entries(table).flatMap(([type, texts]) => {
        const structs = structsOf(type, home)
        if (structs.length === 0 || !Object.hasOwn(table, texts['...'] ?? type)) return [type]
        return Object.keys(texts)
          .filter((field) => field !== '' && field !== '...' && !structs.some(({ fields }) => fields.has(field)))
          .map((field) => `${type}.${field}`)
      })
      assert.deepEqual(wrong, [])
    })
  }

  it('are short, full and plain sentences', () => {
    const own = (texts: FieldTexts): string[] =>
      Object.entries(texts).flatMap(([field, text]) => (field === '...' ? [] : [text]))
    const texts = [...TABLES.values(), SHARED].flatMap((table) => Object.values(table).flatMap(own))
    assert.deepEqual(
      texts.filter((text) => !/^[A-Z*$/.].*\.$/.test(text) || text.length > LONGEST),
      [],
    )
    assert.deepEqual(
      texts.filter((text) => QUESTION.test(text) || VAGUE.test(text)),
      [],
    )
  })

  it('are shared between kinds for conditions, and specific to a kind for other status fields', () => {
    assert.equal(describeDefinition('io.k8s.api.core.v1.NodeCondition', 'status'), 'True, False or Unknown.')
    assert.match(describeDefinition('io.k8s.api.core.v1.Pod', 'status'), /^Observed state/)
  })

  it('are specific to the struct for fields named status, spec and kind inside other structs', () => {
    const odd = [...tableNames.values()].flatMap((table) =>
      [...TABLES].flatMap(([home, types]) =>
        Object.entries(types).flatMap(([type, texts]) => {
          try {
            const struct = structFor(table, type)
            const isObject = struct.fields.has('metadata') || /Options$|^API/.test(type)
            if (nameOf(struct).replace(/\.[^.]+\.[^.]+$/, '') !== home || isObject) return []
            return ['status', 'spec', 'kind', 'apiVersion']
              .filter((field) => struct.fields.has(field) && !Object.hasOwn(texts, field))
              .map((field) => `${type}.${field}`)
          } catch {
            return []
          }
        }),
      ),
    )
    assert.deepEqual([...new Set(odd)], [])
  })

  it('exist for lists, and are derived for unknown names', () => {
    assert.equal(describeDefinition('io.k8s.api.core.v1.PodList'), 'PodList is a list of objects of kind Pod.')
    assert.equal(describeDefinition('io.k8s.api.core.v1.PodList', 'items'), 'Objects of the list.')
    for (const name of ['', 'x', '__proto__.v1.constructor', 'io.k8s.api.core.v1.Nothing']) {
      assert.equal(describeDefinition(name), '')
      assert.equal(describeDefinition(name, 'constructor'), '')
    }
  })
})
