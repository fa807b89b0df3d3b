/** The machine that we are on, as a machine of a cluster. */
import { createSocket } from 'node:dgram'
import { hostname, userInfo } from 'node:os'

import { ProgramError } from '#lib/program.ts'
import type { LoneMachine } from '#provision/cluster-file.ts'

/** Of the block for documentation: nothing is ever sent there. */
const ELSEWHERE = { host: '192.0.2.1', port: 9 }

/** Throws ProgramError when it has no address that pods could reach it by. */
export async function thisMachine(): Promise<LoneMachine> {
  return { name: hostname().toLowerCase(), address: await outwardAddress(), user: userInfo().username }
}

/** The one that it shows to the rest of the world: links of the cluster itself, which come and go, have others. */
async function outwardAddress(): Promise<string> {
  const socket = createSocket('udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.connect(ELSEWHERE.port, ELSEWHERE.host, resolve)
    })
    return socket.address().address
  } catch (cause) {
    throw new ProgramError('This machine has no address of its own: --local needs one, and a default route', { cause })
  } finally {
    socket.close()
  }
}
