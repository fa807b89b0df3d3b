/** What OpenAPI of either version says of a field, as far as explain looks. */

export interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  /** Of version 3 only, as the two that follow. */
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly externalDocs?: { readonly description?: string; readonly url?: string }
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
}
