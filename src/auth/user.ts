/** The user of a request: name, uid, groups and extra values. */
export interface User {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
  /** Annotations for the audit log about the credentials. */
  readonly notes?: Readonly<Record<string, string>>
  /** Warnings for the client about the credentials. */
  readonly warnings?: readonly string[]
}
