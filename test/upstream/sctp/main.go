// Associations of SCTP (RFC 9260) on raw sockets, because not every kernel has SCTP of its own; what stands between both ends sees the same packets.
//
//	sctp serve NAME PORT     answers each message with its name and who asked, until its input ends
//	sctp ask ADDRESS PORT N  prints the answers, each of an association of its own, as JSON
//	sctp hold ADDRESS PORT   one association: asks through it for each line of its input
//
// A packet whose checksum is wrong is not heard: who translates addresses must mend it.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"
)

const (
	data        = 0
	initiate    = 1
	initiateAck = 2
	sack        = 3
	abort       = 6
	shutdown    = 7
	shutdownAck = 8
	cookieEcho  = 10
	cookieAck   = 11
	complete    = 14

	cookieParameter = 7
	headerBytes     = 12
	window          = 65536
	answerTime      = 1500 * time.Millisecond
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type chunk struct {
	kind, flags byte
	body        []byte
}

// packet writes one chunk with the common header before it.
func packet(from, to uint16, tag uint32, one chunk) []byte {
	length := 4 + len(one.body)
	bytes := make([]byte, headerBytes+(length+3)/4*4)
	binary.BigEndian.PutUint16(bytes[0:], from)
	binary.BigEndian.PutUint16(bytes[2:], to)
	binary.BigEndian.PutUint32(bytes[4:], tag)
	bytes[headerBytes], bytes[headerBytes+1] = one.kind, one.flags
	binary.BigEndian.PutUint16(bytes[headerBytes+2:], uint16(length))
	copy(bytes[headerBytes+4:], one.body)
	binary.LittleEndian.PutUint32(bytes[8:], crc32.Checksum(bytes, castagnoli))
	return bytes
}

type heard struct {
	from, to uint16
	tag      uint32
	chunks   []chunk
}

func read(bytes []byte) (heard, error) {
	if len(bytes) < headerBytes {
		return heard{}, errors.New("too short")
	}
	sum := binary.LittleEndian.Uint32(bytes[8:])
	copied := append([]byte{}, bytes...)
	binary.LittleEndian.PutUint32(copied[8:], 0)
	if crc32.Checksum(copied, castagnoli) != sum {
		return heard{}, errors.New("wrong checksum")
	}
	found := heard{from: binary.BigEndian.Uint16(bytes), to: binary.BigEndian.Uint16(bytes[2:]), tag: binary.BigEndian.Uint32(bytes[4:])}
	for rest := bytes[headerBytes:]; len(rest) >= 4; {
		length := int(binary.BigEndian.Uint16(rest[2:]))
		if length < 4 || length > len(rest) {
			break
		}
		found.chunks = append(found.chunks, chunk{rest[0], rest[1], rest[4:length]})
		rest = rest[min((length+3)/4*4, len(rest)):]
	}
	return found, nil
}

func numbers(values ...uint32) []byte {
	var bytes []byte
	for _, value := range values {
		bytes = binary.BigEndian.AppendUint32(bytes, value)
	}
	return bytes
}

// opening is the body of INIT and INIT ACK: a stream each way.
func opening(tag, tsn uint32) []byte { return numbers(tag, window, 1<<16|1, tsn) }

func message(tsn uint32, text string) chunk {
	return chunk{data, 3, append(numbers(tsn, 0, 0), text...)}
}

func received(tsn uint32) chunk { return chunk{sack, 0, numbers(tsn, window, 0)} }

func serve(name string, port uint16) error {
	socket, err := net.ListenIP("ip4:132", nil)
	if err != nil {
		return err
	}
	go func() {
		bufio.NewReader(os.Stdin).ReadString(0)
		os.Exit(0)
	}()
	say("ready")
	const own = 0x5e7e5e7e
	buffer := make([]byte, 1<<16)
	next := map[string]uint32{}
	for {
		count, peer, err := socket.ReadFromIP(buffer)
		if err != nil {
			return err
		}
		said, err := read(buffer[:count])
		if err != nil || said.to != port {
			continue
		}
		key := fmt.Sprint(peer, " ", said.from)
		for _, one := range said.chunks {
			// What is known of the other end is in the cookie, and then in the tag that it is told by.
			tag := tags[key]
			send := func(what chunk) { socket.WriteToIP(packet(port, said.from, tag, what), peer) }
			switch one.kind {
			case initiate:
				tag = binary.BigEndian.Uint32(one.body)
				tags[key], next[key] = tag, own
				cookie := append([]byte{0, cookieParameter, 0, 8}, one.body[:4]...)
				send(chunk{initiateAck, 0, append(opening(own, own), cookie...)})
			case cookieEcho:
				send(chunk{cookieAck, 0, nil})
			case data:
				send(received(binary.BigEndian.Uint32(one.body)))
				send(message(next[key], name+" "+peer.IP.String()))
				next[key]++
			case shutdown:
				send(chunk{shutdownAck, 0, nil})
			case abort, complete:
				delete(tags, key)
				delete(next, key)
			}
		}
	}
}

var tags = map[string]uint32{}

type association struct {
	socket         *net.IPConn
	from, to       uint16
	own, peer, tsn uint32
}

func (a *association) send(tag uint32, what chunk) error {
	_, err := a.socket.Write(packet(a.from, a.to, tag, what))
	return err
}

// await is the first chunk of this kind that is for us.
func (a *association) await(kind byte) (chunk, error) {
	buffer := make([]byte, 1<<16)
	a.socket.SetReadDeadline(time.Now().Add(answerTime))
	for {
		// Read would leave the header of IP before it.
		count, _, err := a.socket.ReadFromIP(buffer)
		if err != nil {
			return chunk{}, err
		}
		said, err := read(buffer[:count])
		if err != nil || said.to != a.from || said.from != a.to || said.tag != a.own {
			continue
		}
		for _, one := range said.chunks {
			if one.kind == kind {
				return one, nil
			}
		}
	}
}

func open(address string, port uint16) (*association, error) {
	socket, err := net.DialIP("ip4:132", nil, &net.IPAddr{IP: net.ParseIP(address)})
	if err != nil {
		return nil, err
	}
	a := &association{socket: socket, from: uint16(32768 + rand.N(28000)), to: port, own: rand.Uint32() | 1, tsn: rand.Uint32()}
	if err := a.send(0, chunk{initiate, 0, opening(a.own, a.tsn)}); err != nil {
		return nil, err
	}
	answer, err := a.await(initiateAck)
	if err != nil {
		return nil, err
	}
	a.peer = binary.BigEndian.Uint32(answer.body)
	if err := a.send(a.peer, chunk{cookieEcho, 0, answer.body[20:]}); err != nil {
		return nil, err
	}
	_, err = a.await(cookieAck)
	return a, err
}

func (a *association) ask() (string, error) {
	if err := a.send(a.peer, message(a.tsn, "?")); err != nil {
		return "", err
	}
	a.tsn++
	answer, err := a.await(data)
	if err != nil {
		return "", err
	}
	a.send(a.peer, received(binary.BigEndian.Uint32(answer.body)))
	return string(answer.body[12:]), nil
}

func (a *association) close() {
	a.send(a.peer, chunk{shutdown, 0, numbers(0)})
	a.await(shutdownAck)
	a.send(a.peer, chunk{complete, 0, nil})
	a.socket.Close()
}

func say(text string) {
	line, _ := json.Marshal(text)
	fmt.Println(string(line))
}

func answered(text string, err error) string {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return "timeout"
	}
	if err != nil {
		return err.Error()
	}
	return text
}

func once(address string, port uint16) (string, error) {
	a, err := open(address, port)
	if err != nil {
		return "", err
	}
	defer a.close()
	return a.ask()
}

func main() {
	what, first := os.Args[1], os.Args[2]
	number, err := strconv.Atoi(os.Args[3])
	port := uint16(number)
	switch {
	case err != nil:
	case what == "serve":
		err = serve(first, port)
	case what == "ask":
		times, _ := strconv.Atoi(os.Args[4])
		for range times {
			say(answered(once(first, port)))
		}
	case what == "hold":
		var a *association
		if a, err = open(first, port); err != nil {
			break
		}
		say("ready")
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			say(answered(a.ask()))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
