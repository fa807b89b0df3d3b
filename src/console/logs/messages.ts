/** The messages between the page and the worker that holds the lines of logs. */

/** One container. */
export interface LogSource {
  /** Shown before each line. */
  readonly label: string
  /** Path of the log, with its query. */
  readonly path: string
}

export interface LogLine {
  /** Index of its source. */
  readonly source: number
  /** The container runtime's time, RFC 3339. Texts of equal length sort as times. */
  readonly time: string
  readonly text: string
}

export interface LogView {
  /** Part of a line, without regard to case. `/…/` is a regular expression. */
  readonly filter: string
  /** Undefined: the last lines, also while new ones come. */
  readonly from: number | undefined
  readonly count: number
}

export type ToLogWorker =
  | { readonly type: 'open'; readonly sources: readonly LogSource[]; readonly view: LogView }
  | { readonly type: 'view'; readonly view: LogView }
  /** The answer has all lines that fit the filter. */
  | { readonly type: 'download' }

export type SourceState = 'connecting' | 'open' | 'ended' | { readonly error: string }

export type FromLogWorker =
  | {
      readonly type: 'lines'
      readonly total: number
      readonly shown: number
      readonly from: number
      readonly lines: readonly LogLine[]
      readonly sources: readonly SourceState[]
      /** Lines that were dropped because memory is limited. */
      readonly dropped: number
      /** Why the filter is not valid; empty if it is. */
      readonly filterError: string
    }
  | { readonly type: 'text'; readonly text: string }
