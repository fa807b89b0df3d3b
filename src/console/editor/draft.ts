/** Keeps typed text in the session storage of the tab, so that it survives a reload and a log-in. */
import type { KubeObject } from '#meta/object.ts'

export interface Draft {
  readonly text: string
  /** The object that the edit began with; absent for new objects. */
  readonly base?: KubeObject
}

const PREFIX = 'hyperkube-draft '

export function readDraft(key: string): Draft | undefined {
  const stored = sessionStorage.getItem(PREFIX + key)
  try {
    return stored === null ? undefined : (JSON.parse(stored) as Draft)
  } catch {
    return undefined
  }
}

/** A browser that has no room left keeps the text in the page only. */
export function keepDraft(key: string, draft: Draft): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(draft))
  } catch {
    sessionStorage.removeItem(PREFIX + key)
  }
}

export function dropDraft(key: string): void {
  sessionStorage.removeItem(PREFIX + key)
}
