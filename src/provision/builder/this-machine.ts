/** Describes the local machine as a machine of the cluster that `hyperkube build` reaches without SSH. */
import { createSocket } from 'node:dgram'
import { hostname, userInfo } from 'node:os'

import { ProgramError } from '#lib/program.ts'

import type { LoneMachine } from '../file/cluster-file.ts'

/** An address of the documentation block, to which no packet is sent. */
const ELSEWHERE = { host: '192.0.2.1', port: 9 }

/** Throws ProgramError if the machine has no address that pods can reach. */
export async function thisMachine(): Promise<LoneMachine> {
  return { name: hostname().toLowerCase(), address: await outwardAddress(), user: userInfo().username }
}

/** The source address of the default route; links of the cluster itself have other addresses. */
async function outwardAddress(): Promise<string> {
  const socket = createSocket('udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.connect(ELSEWHERE.port, ELSEWHERE.host, resolve)
    })
    return socket.address().address
  } catch (cause) {
    throw new ProgramError('This machine has no suitable address: --local needs an address and a default route', {
      cause,
    })
  } finally {
    socket.close()
  }
}
