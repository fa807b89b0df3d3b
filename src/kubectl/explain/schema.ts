/** The types of the parts of OpenAPI schemas, v2 and v3, that `kubectl explain` reads. */

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
  /** Only in version 3, like the next two. */
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly externalDocs?: { readonly description?: string; readonly url?: string }
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
}
