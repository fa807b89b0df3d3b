/** Differences that are there for a reason, and the reason. */
export const EXPLAINED: readonly { readonly in: RegExp; readonly line: RegExp; readonly why: string }[] = []
