/**
 * Loads node:http without an import statement. An import statement evaluates all its exports, one of which loads undici
 * (measured: 80 ms and 15 MB at every start).
 */
import type * as NodeHttp from 'node:http'

export const http: typeof NodeHttp = process.getBuiltinModule('node:http')
