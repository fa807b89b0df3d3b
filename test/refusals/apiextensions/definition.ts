/** Functions that change a valid CustomResourceDefinition for a refusal case. */
import type { Trial } from '../case.ts'

export const VERSION = '/spec/versions/0'
export const SCHEMA: string = `${VERSION}/schema/openAPIV3Schema`

/** A definition whose `spec.a` has this schema. */
export const property = (why: string, schema: unknown): Trial => ({
  why,
  set: { [`${SCHEMA}/properties/spec/properties/a`]: schema },
})

export const list = (part: object): object => ({
  type: 'array',
  items: { type: 'object', properties: { k: { type: 'string' } } },
  ...part,
})
