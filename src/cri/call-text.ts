/** Formats failed gRPC calls as Go programs do, since users know these texts. Pure. */
import { GrpcError } from '#lib/grpc/status.ts'

/** `rpc error: code = NotFound desc = …`. */
export function callText(error: unknown): string {
  if (!(error instanceof GrpcError)) return messageText(error)
  const code = error.code === 'cancelled' ? 'Canceled' : error.code.charAt(0).toUpperCase() + error.code.slice(1)
  return `rpc error: code = ${code} desc = ${error.message}`
}

/** The text of a failed pull: code Unknown is omitted. */
export function pullText(error: unknown): string {
  return error instanceof GrpcError && error.code === 'unknown' ? error.message : callText(error)
}

export function messageText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
