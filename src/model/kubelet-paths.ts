/**
 * The paths of the kubelet's HTTP API that run a command in a container or connect to it. The API server and the
 * kubelet both authorize by this list.
 */

/** The first segment of the path, decoded and case-sensitive, as the kubelet's router compares it. */
const COMMAND_PATHS: ReadonlySet<string> = new Set(['exec', 'attach', 'portForward', 'run'])

/**
 * True if a request with this first segment needs the verb `create`, whatever its method. A WebSocket begins with GET,
 * so the method alone would let readers of `nodes/proxy` run commands.
 */
export function needsCreate(firstSegment: string): boolean {
  return COMMAND_PATHS.has(firstSegment)
}
