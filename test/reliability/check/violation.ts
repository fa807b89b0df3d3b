/** The type of a violated guarantee: its name and the evidence. */
export interface Violation {
  readonly rule: string
  readonly detail: string
}
