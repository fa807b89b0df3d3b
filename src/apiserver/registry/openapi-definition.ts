/** The types of OpenAPI definitions, and the differences between OpenAPI 2 and 3. */
export type Definition = Record<string, unknown>

export interface Dialect {
  /** `#/components/schemas/` or `#/definitions/`. */
  readonly refPrefix: string
  /** OpenAPI 3 wraps a reference in allOf, so that a default may stand beside it. */
  readonly wrapsRefs: boolean
}
