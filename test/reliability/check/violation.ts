/** A promise that was broken, by the name of the promise, with what shows it. */
export interface Violation {
  readonly rule: string
  readonly detail: string
}
