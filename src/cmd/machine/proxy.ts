/** `hyperkube machine proxy`: the local address at which a node reaches all API servers. */
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { startBalancer, type TcpServer } from '#lib/net/tcp-balancer.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'

export const proxy: Program = defineProgram({
  name: 'proxy',
  long: 'proxy forwards connections to the first of the servers that accepts them.',
  flags: {
    proxy: {
      listen: flag(string, '127.0.0.1:6443', '`address` and port to listen on'),
      servers: flag(strings, [], 'comma-separated addresses and ports of the servers'),
    },
  },
  async run({ flags, clock }, signal) {
    await using closing = new AsyncDisposableStack()
    const servers = flags.servers.map(parseServer)
    if (servers.length === 0) throw new ProgramError('Set --servers to the addresses of the servers')
    await startBalancer({ listen: parseServer(flags.listen), servers, clock }, closing)
    await aborted(signal)
    return 0
  },
})

/** Throws ProgramError. */
function parseServer(text: string): TcpServer {
  const [, host = '', port = ''] = /^\[?([^\]]+)\]?:(\d+)$/.exec(text) ?? []
  if (host === '') throw new ProgramError(`"${text}" is not an address with a port`)
  return { host, port: Number(port) }
}
