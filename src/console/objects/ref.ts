/** An object by its kind and name, as other objects name it. */
export interface Ref {
  readonly apiVersion: string
  readonly kind: string
  /** Undefined for objects without a namespace. */
  readonly namespace?: string | undefined
  readonly name: string
}

/** Empty for the core group. */
export function groupOf(apiVersion: string): string {
  const at = apiVersion.indexOf('/')
  return at < 0 ? '' : apiVersion.slice(0, at)
}
