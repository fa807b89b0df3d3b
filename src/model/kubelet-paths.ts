/**
 * The paths of the kubelet's HTTP API that run a command in a container or open a connection to it. The API server and
 * the kubelet both read this list, so that neither authorizes what the other would not.
 */

/** The first segment of the path, as the kubelet's router compares it: decoded, and in this case only. */
const COMMAND_PATHS: ReadonlySet<string> = new Set(['exec', 'attach', 'portForward', 'run'])

/**
 * Whether a request whose path begins with this segment needs the verb `create`, whatever its method. A WebSocket begins
 * with GET, so the method alone would allow everybody who may read `nodes/proxy` to run commands.
 */
export function needsCreate(firstSegment: string): boolean {
  return COMMAND_PATHS.has(firstSegment)
}
