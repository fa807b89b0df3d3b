/** `hyperkube machine proxy`: by which a node reaches all API servers at one address of its own. */
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { startBalancer, type TcpServer } from '#lib/tcp-balancer.ts'

export const proxy: Program = defineProgram({
  name: 'proxy',
  long: 'proxy passes connections on to whichever of the servers accepts them.',
  flags: {
    proxy: {
      listen: flag(string, '127.0.0.1:6443', '`address` and port to listen on'),
      servers: flag(strings, [], 'addresses and ports of the servers'),
    },
  },
  async run({ flags, clock }, signal) {
    await using closing = new AsyncDisposableStack()
    const servers = flags.servers.map(parseServer)
    if (servers.length === 0) throw new ProgramError('Say with --servers where connections go')
    await startBalancer({ listen: parseServer(flags.listen), servers, clock }, closing)
    await aborted(signal)
    return 0
  },
})

/** Throws ProgramError. */
function parseServer(text: string): TcpServer {
  const [, host = '', port = ''] = /^\[?([^\]]+)\]?:(\d+)$/.exec(text) ?? []
  if (host === '') throw new ProgramError(`"${text}" is no address with a port`)
  return { host, port: Number(port) }
}
