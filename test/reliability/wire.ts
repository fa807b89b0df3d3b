/**
 * Encodes messages between the reliability tests and their child process with the store: one JSON document per line.
 */
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'

import type { StorageErrorCode } from '#storage/backend.ts'

import type { Batch, Method, WatchRequest } from './store.ts'

export type ToChild =
  | { readonly id: number; readonly method: Method; readonly argument: unknown }
  | { readonly id: number; readonly watch: WatchRequest }
  | { readonly id: number; readonly cancel: true }

export type FromChild =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly batch: Batch }
  | { readonly id: number; readonly end: true }
  | { readonly id: number; readonly error: WireError }

export interface WireError {
  readonly code: StorageErrorCode
  readonly message: string
}

/** The settings of the child process, passed as its argument. */
export interface ChildSettings {
  /** As `openBackend` takes it. */
  readonly location: string
  readonly socket: string
  readonly seed: number
  readonly ballastBytes?: number
  readonly defect?: string
}

export function sendLine(socket: Socket, message: ToChild | FromChild): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`)
}

/** Calls `hear` with each message, parsed, until the connection ends. */
export function hearLines(socket: Socket, hear: (message: unknown) => void): void {
  const lines = createInterface({ input: socket })
  lines.on('line', (line) => hear(JSON.parse(line)))
  // The socket's own listeners see the end.
  lines.on('error', () => undefined)
}
