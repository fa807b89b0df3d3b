/** The interface for metrics of one request: the server calls a method at each step of the request. */
import type { RequestInfo } from '#auth/request-info.ts'

/** The data that the metrics of a request are labelled by. */
export interface Observed {
  readonly info: RequestInfo
  readonly method: string
  readonly contentType: string
  readonly query: URLSearchParams
}

export type FilterName = 'authentication' | 'audit' | 'impersonation' | 'priorityandfairness' | 'authorization'

/** The meter of one request; its methods are called in the order of the steps. */
export interface RequestMeter {
  /** The result of authentication: user found (`success`), no credentials (`failure`), wrong ones (`error`). */
  identified(result: 'success' | 'failure' | 'error', userName: string): void
  /** The request has left a filter, which took all the time since the last one. */
  passed(filter: FilterName): void
  decided(result: 'allowed' | 'denied' | 'no-opinion' | 'error'): void
  /** The handler starts: a long-running request counts as running from here on. */
  routed(): void
  bodyRead(bytes: number): void
  /** The server rejected it with this code. */
  terminated(code: number): void
  /** The response was aborted. */
  aborted(): void
  /** The handler finished after the request had timed out. */
  finishedLate(status: 'ok' | 'error'): void
  /** Called once. `bytes` of the response, if known. */
  end(code: number, bytes: number | undefined): void
}

export type MeterRequest = (request: Observed) => RequestMeter

function nothing(): void {}

/** For servers without metrics. */
export const UNMETERED: RequestMeter = {
  identified: nothing,
  passed: nothing,
  decided: nothing,
  routed: nothing,
  bodyRead: nothing,
  terminated: nothing,
  aborted: nothing,
  finishedLate: nothing,
  end: nothing,
}
